#include <stdint.h>

int32_t narrow(const uint8_t *data, int32_t n) {
    uint16_t sum = 0;
    for (uint16_t i = 0; i < (uint16_t)n; i++)
        sum = (uint16_t)((sum ^ data[i]) * 3u);
    return sum;
}
