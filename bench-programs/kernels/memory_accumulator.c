#include <stdint.h>

void memory_accumulator(int64_t *sum, const uint8_t *data, int64_t len) {
    for (int64_t i = 0; i < len; i++)
        *sum += data[i];
}
