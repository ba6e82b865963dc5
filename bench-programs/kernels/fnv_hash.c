#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t fnv_hash(const uint8_t *data, int64_t len) {
    uint64_t hash = 0xcbf29ce484222325;
    for (int64_t i = 0; i < len; i++) {
        check(i, len);
        hash = (hash ^ data[i]) * 0x100000001b3;
    }
    return (int64_t)hash;
}
