#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void matmul(const double *a, const double *b, double *c, int64_t n, int64_t len) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < n; k++) {
                check(i * n + k, len);
                check(k * n + j, len);
                sum += a[i * n + k] * b[k * n + j];
            }
            check(i * n + j, len);
            c[i * n + j] = sum;
        }
    }
}
