// The task of two_memories.wat
#include "program.h"

int64_t run(int32_t rounds) {
    uint32_t counts[256] = {0};
    uint64_t sum = 0;
    for (uint32_t round = 0; round < (uint32_t)rounds; round++) {
        for (uint32_t i = 0; i < 8000; i++)
            counts[i * (round + i) & 255]++;
        sum = sum * 31 + counts[round & 255];
    }
    return (int64_t)sum;
}
