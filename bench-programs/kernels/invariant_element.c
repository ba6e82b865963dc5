#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t invariant_element(const int64_t *data, int64_t len, int64_t n, int64_t count) {
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        check(n, len);
        total = (total ^ i) + data[n];
    }
    return total;
}
