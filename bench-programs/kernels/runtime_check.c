#include <stdint.h>

extern int64_t host_out_of_bounds(int64_t, int64_t);

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len) {
        host_out_of_bounds(index, len);
        __builtin_trap();
    }
}

void runtime_check(const int64_t *x, int64_t x_len, int64_t *y, int64_t y_len, int64_t factor, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < x_len; i++) {
            check(i, x_len);
            check(i, y_len);
            y[i] += factor * x[i];
        }
    }
}
