#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void saxpy(const double *x, int64_t len, double *y, int64_t y_len, double factor, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            check(i, y_len);
            check(i, len);
            y[i] += factor * x[i];
        }
    }
}
