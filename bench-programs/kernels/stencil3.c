#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void stencil3(const double *data, int64_t len, double *output, int64_t output_len, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 1; i < len - 1; i++) {
            check(i - 1, len);
            check(i, len);
            check(i + 1, len);
            check(i, output_len);
            output[i] = (data[i - 1] + data[i] + data[i + 1]) * 0.3;
        }
    }
}
