#include <stdint.h>

int64_t digit_sums(const int64_t *data, int64_t len, int64_t base, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            for (uint64_t rest = (uint64_t)data[i]; rest > 0; rest /= (uint64_t)base)
                total += rest % (uint64_t)base;
        }
    }
    return (int64_t)total;
}
