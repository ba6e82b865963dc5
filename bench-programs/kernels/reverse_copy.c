#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void reverse_copy(const int64_t *data, int64_t len, int64_t *output, int64_t output_len, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            check(i, len);
            check(len - 1 - i, output_len);
            output[len - 1 - i] = data[i];
        }
    }
}
