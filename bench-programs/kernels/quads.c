#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t quads(const int64_t *data, int64_t len, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; (uint64_t)i < (uint64_t)count; i += 4) {
            for (int64_t j = i; j < i + 4; j++)
                check(j, len);
            total += (data[i] ^ data[i + 1]) + (data[i + 2] ^ data[i + 3]);
        }
    }
    return total;
}
