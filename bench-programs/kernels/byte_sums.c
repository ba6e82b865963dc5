#include <stdint.h>

void byte_sums(uint8_t *a, int64_t len) {
    for (int64_t i = 1; i < len; i++)
        a[i] = (uint8_t)(a[i - 1] + a[i]);
}
