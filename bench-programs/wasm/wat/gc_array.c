// The task of gc_array.wat
#include <stdlib.h>

#include "program.h"

int64_t run(int32_t limit) {
    uint8_t *composite = calloc((size_t)limit, 1);
    uint64_t gaps[256], count = 0;
    int32_t last = 0;
    for (int i = 0; i < 256; i++)
        gaps[i] = 7;
    for (int32_t i = 2; i < limit; i++) {
        if (composite[i])
            continue;
        count++;
        if (last != 0)
            gaps[i - last]++;
        last = i;
        for (int64_t j = (int64_t)i * i; j < limit; j += i)
            composite[j] = 1;
    }
    free(composite);
    uint64_t sum = count;
    for (int i = 0; i < 256; i++)
        sum = sum * 31 + gaps[i];
    return (int64_t)sum;
}
