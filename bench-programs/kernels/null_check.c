#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t null_check(const char *base, int64_t array, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i++) {
            if (array == 0)
                __builtin_trap();
            const int64_t *object = (const int64_t *)(base + array);
            check(i, object[0]);
            total += object[1 + i];
        }
    }
    return total;
}
