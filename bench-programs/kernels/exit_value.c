#include <stdint.h>

int64_t exit_value(const int64_t *data, int64_t len, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        uint64_t last = 0;
        for (int64_t i = 0; i < len; i++) {
            uint64_t x = (uint64_t)data[i];
            total += x;
            last = ((x ^ (uint64_t)i) * 31 ^ total) * 17;
        }
        total ^= last;
    }
    return (int64_t)total;
}
