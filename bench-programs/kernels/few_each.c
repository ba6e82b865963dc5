#include <stdint.h>

int64_t few_each(const int64_t *data, int64_t len, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            int64_t more = data[i] & 3;
            for (int64_t j = 0; j < more; j++)
                total ^= (uint64_t)data[i + j] * 3;
        }
    }
    return (int64_t)total;
}
