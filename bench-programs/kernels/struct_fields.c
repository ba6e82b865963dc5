#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

struct vector {
    int64_t start, len, sum;
};

void struct_fields(uint8_t *base, struct vector *vector, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < vector->len; i++) {
            const int64_t *data = (const int64_t *)(base + vector->start);
            check(i, vector->len);
            vector->sum += data[i];
        }
    }
}
