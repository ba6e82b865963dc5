#include <stdint.h>

int64_t scaled_sum(const int64_t *table, int64_t len, int64_t n, const int64_t *values, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i++) {
            if ((uint64_t)n >= (uint64_t)len)
                __builtin_trap();
            total += values[i] * table[n];
        }
    }
    return total;
}
