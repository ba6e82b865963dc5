#include <stdint.h>

int64_t both_conditions(const int64_t *data, int64_t len, int64_t mode, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            if ((mode > 5) & (data[i] > 500))
                total += (uint64_t)data[i];
        }
    }
    return (int64_t)total;
}
