#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

struct slice {
    int64_t start, len;
};

int64_t slice_inside(const struct slice *slice, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i++) {
            const int64_t *data = (const int64_t *)((const char *)slice + slice->start);
            check(i, slice->len);
            total += data[i];
        }
    }
    return total;
}
