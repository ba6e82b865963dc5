#include <stdint.h>

int64_t skip_zeros(const int64_t *data, int64_t len, int64_t rounds) {
    uint64_t product = 1;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            if (data[i] == 0)
                continue;
            product *= (uint64_t)data[i];
        }
    }
    return (int64_t)product;
}
