#include <stdint.h>

int64_t clamped_neighbours(const int64_t *data, int64_t len, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            uint64_t left = (uint64_t)data[i], right = left;
            if (i > 0)
                left = (uint64_t)data[i - 1];
            if (i < len - 1)
                right = (uint64_t)data[i + 1];
            total += (left + right) ^ (uint64_t)data[i];
        }
    }
    return (int64_t)total;
}
