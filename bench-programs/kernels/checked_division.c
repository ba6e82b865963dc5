#include <stdint.h>

int64_t checked_division(const uint64_t *data, int64_t count, uint64_t divisor, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i++) {
            if (divisor == 0)
                __builtin_trap();
            total += data[i] / divisor;
        }
    }
    return (int64_t)total;
}
