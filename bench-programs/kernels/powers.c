#include <stdint.h>

int64_t powers(const int64_t *data, int64_t len, int64_t exponent, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            uint64_t power = 1;
            for (int64_t e = 0; e < exponent; e++)
                power *= (uint64_t)data[i];
            total += power;
        }
    }
    return (int64_t)total;
}
