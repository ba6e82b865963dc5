#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

static inline int64_t add(int64_t x, int64_t y) {
    int64_t sum;
    if (__builtin_add_overflow(x, y, &sum))
        __builtin_trap();
    return sum;
}

int64_t counted_overflow(const int64_t *data, int64_t len, int64_t first, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i = add(i, 1)) {
            int64_t place = add(first, i);
            check(place, len);
            total += data[place];
        }
    }
    return total;
}
