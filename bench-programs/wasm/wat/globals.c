// The task of globals.wat
#include "program.h"

int64_t run(int32_t end) {
    uint64_t sum = 0;
    uint32_t i = 0, step = 1;
    double scale = 1.0;
    for (; i < (uint32_t)end; i += step) {
        if (i % 7 == 0) {
            step = i % 3 + 1;
            scale = scale * 0.5 + 0.25;
        }
        if (i % 4096 == 0)
            for (uint32_t until = i + 1000; i < until; i += step)
                sum += i;
        sum = sum * 31 + (uint64_t)(scale * (double)i);
    }
    return (int64_t)sum;
}
