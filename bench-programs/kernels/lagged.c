#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t lagged(const int64_t *a, int64_t a_len, const int64_t *b, int64_t b_len, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < b_len - 3; i++) {
            check(i, a_len);
            check(i + 3, b_len);
            total += a[i] * b[i + 3];
        }
    }
    return total;
}
