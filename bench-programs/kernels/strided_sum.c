#include <stdint.h>

int64_t strided_sum(const int64_t *data, int64_t len, int64_t stride, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++)
            total += data[i * stride];
    }
    return total;
}
