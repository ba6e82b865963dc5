#include <stdint.h>

int64_t weighted_index(const int64_t *counts, int64_t len, int64_t weight) {
    uint64_t total = 0;
    for (int64_t at = 0; at < len; at++) {
        uint64_t sum = 0;
        for (int64_t i = 0; i < counts[at]; i++)
            sum += (uint64_t)i * (uint64_t)i * (uint64_t)weight + (uint64_t)i;
        total = (total ^ sum) + 1;
    }
    return (int64_t)total;
}
