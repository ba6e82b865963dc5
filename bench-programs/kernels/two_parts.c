#include <stdint.h>

int64_t two_parts(const int64_t *data, int64_t len, int64_t middle, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            if (i < middle)
                total ^= (uint64_t)data[i];
            else
                total += (uint64_t)data[i];
        }
    }
    return (int64_t)total;
}
