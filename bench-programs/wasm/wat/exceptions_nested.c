// The task of exceptions_nested.wat, with returns in the place of exceptions
#include "program.h"

static uint64_t tried;

static uint32_t search(int32_t perimeter) {
    for (int32_t i = 1; i * 3 <= perimeter; i++)
        for (int32_t j = i; perimeter - i - j >= j; j++) {
            int32_t k = perimeter - i - j;
            tried++;
            if (i * i + j * j == k * k)
                return (uint32_t)(i * j * k);
        }
    return 0;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0, found = 0;
    tried = 0;
    for (int32_t round = 0; round < rounds; round++) {
        uint32_t product = search(12 + round % 97);
        found += product != 0;
        sum = product != 0 ? sum * 31 + product : sum + 1;
    }
    return (int64_t)(sum + (found << 32) + (uint32_t)tried);
}
