#include <stdint.h>

int64_t slot_sum(const int64_t *values, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i++)
            total += values[i];
    }
    return total;
}
