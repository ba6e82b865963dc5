#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void histogram(const uint8_t *data, int64_t len, int64_t *counts, int64_t counts_len, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            check(i, len);
            check(data[i], counts_len);
            counts[data[i]]++;
        }
    }
}
