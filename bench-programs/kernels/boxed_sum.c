#include <stdint.h>

struct object {
    int64_t start, len;
};

int64_t boxed_sum(const uint8_t *base, const int64_t *variable, int64_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i++) {
            if (*variable == 0)
                __builtin_trap();
            const struct object *object = (const struct object *)(base + *variable);
            const int64_t *data = (const int64_t *)(base + object->start);
            if ((uint64_t)i >= (uint64_t)object->len)
                __builtin_trap();
            total += data[i];
        }
    }
    return total;
}
