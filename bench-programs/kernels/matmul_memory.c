#include <stdint.h>

void matmul_memory(uint8_t *memory, int32_t a, int32_t b, int32_t c, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++)
            for (int32_t k = 0; k < n; k++) {
                int32_t x = *(int32_t *)(memory + (uint32_t)(a + 4 * (i * n + k)));
                int32_t y = *(int32_t *)(memory + (uint32_t)(b + 4 * (k * n + j)));
                *(int32_t *)(memory + (uint32_t)(c + 4 * (i * n + j))) += x * y;
            }
}
