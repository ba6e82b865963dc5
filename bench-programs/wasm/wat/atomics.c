// The task of atomics.wat, without atomics
#include "program.h"

int64_t run(int32_t rounds) {
    uint32_t counters[256] = {0}, waiting = 0;
    uint64_t sum = 0, all = 0;
    for (uint32_t i = 0; i < (uint32_t)rounds; i++) {
        counters[i * i % 256] += i;
        waiting += i;
        if (i % 50 == 49) {
            sum = sum * 31 + waiting;
            waiting = 0;
        }
        all ^= i;
    }
    for (int i = 0; i < 256; i++)
        sum = sum * 31 + counters[i];
    uint64_t last = rounds > 0 ? (uint16_t)(rounds - 1) : 0;
    return (int64_t)(sum + (uint64_t)rounds + all + last);
}
