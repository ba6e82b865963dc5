#include <stdint.h>

int64_t buckets(const int64_t *data, int64_t len, int64_t count, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++)
            total += (uint64_t)data[i] * 0x9E3779B97F4A7C15u % (uint64_t)count;
    }
    return (int64_t)total;
}
