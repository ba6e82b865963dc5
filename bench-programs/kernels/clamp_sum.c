#include <stdint.h>

int32_t clamp_sum(const uint16_t *data, int32_t len, int32_t low, int32_t high) {
    int32_t total = 0;
    for (int32_t i = 0; i < len; i++) {
        int32_t x = data[i] < low ? low : data[i];
        total += x > high ? high : x;
    }
    return total;
}
