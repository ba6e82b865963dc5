#include <stdint.h>

int64_t middle_exit(const int64_t *data, int64_t len, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0;;) {
            uint64_t x = (uint64_t)data[i];
            if (x & 1)
                total += x;
            else
                total ^= x;
            if (++i == len)
                break;
            total += total >> 7;
        }
    }
    return (int64_t)total;
}
