#include <stdint.h>

int64_t resampled_sum(const int64_t *values, int64_t len, int64_t step, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        uint64_t position = 0;
        for (int64_t i = 0; i < count; i++) {
            if (position >> 16 >= (uint64_t)len)
                __builtin_trap();
            total += values[position >> 16];
            position += (uint64_t)step;
        }
    }
    return total;
}
