#include <stdint.h>

static inline void *place(char *base, int64_t size, uint32_t address, uint64_t bytes) {
    if (address + bytes > (uint64_t)size)
        __builtin_trap();
    return base + address;
}

int64_t wasm_sum(char *base, int64_t size, int32_t data, int32_t count, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int32_t i = 0; i < count; i++)
            total += *(int64_t *)place(base, size, (uint32_t)data + ((uint32_t)i << 3), 8);
    }
    return total;
}
