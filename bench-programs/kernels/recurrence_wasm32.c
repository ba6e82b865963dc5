#include <stdint.h>

void recurrence_wasm32(uint8_t *memory, int32_t a, int32_t b, int32_t k, int32_t len, int32_t rounds) {
    for (int32_t round = 0; round < rounds; round++)
        for (int32_t i = 1; i < len; i++) {
            uint32_t last = *(uint32_t *)(memory + ((uint32_t)a + 4 * (uint32_t)(i - 1)));
            uint32_t x = *(uint32_t *)(memory + ((uint32_t)b + 4 * (uint32_t)i));
            *(uint32_t *)(memory + ((uint32_t)a + 4 * (uint32_t)i)) = last * (uint32_t)k + x;
        }
}
