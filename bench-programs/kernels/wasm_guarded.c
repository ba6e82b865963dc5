#include <stdint.h>

static inline void *place(char *base, int64_t size, uint32_t address, uint64_t bytes) {
    if (address + bytes > (uint64_t)size)
        __builtin_trap();
    return base + address;
}

void wasm_guarded(char *base, int64_t size, int32_t x, int32_t y, int32_t count, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int32_t i = 0; i < count; i++) {
            uint32_t from = (uint32_t)x + ((uint32_t)i << 2), to = (uint32_t)y + ((uint32_t)i << 2);
            *(int32_t *)place(base, size, to, 4) = *(int32_t *)place(base, size, from, 4) * 3;
        }
    }
}
