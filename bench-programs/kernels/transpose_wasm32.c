#include <stdint.h>

void transpose_wasm32(uint8_t *memory, int32_t a, int32_t b, int32_t rows, int32_t columns, int32_t rounds) {
    for (int32_t round = 0; round < rounds; round++)
        for (int32_t i = 0; i < rows; i++)
            for (int32_t j = 0; j < columns; j++) {
                uint32_t x = *(uint32_t *)(memory + ((uint32_t)a + 4 * (uint32_t)(i * columns + j)));
                *(uint32_t *)(memory + ((uint32_t)b + 4 * (uint32_t)(j * rows + i))) = x;
            }
}
