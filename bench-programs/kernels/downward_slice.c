#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t downward_slice(const int64_t *data, int64_t len, int64_t from, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = count - 1; i >= 0; i--) {
            check(i - from, len);
            total += i * data[i - from];
        }
    }
    return total;
}
