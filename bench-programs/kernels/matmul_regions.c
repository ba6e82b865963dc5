#include <stdint.h>

void matmul_regions(const int32_t *restrict a, const int32_t *restrict b, int32_t *restrict c, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n; k++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}
