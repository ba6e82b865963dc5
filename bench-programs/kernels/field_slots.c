#include <stdint.h>

int64_t field_slots(int64_t n) {
    uint64_t total = 1;
    for (int32_t i = 0; i < n; i++) {
        uint32_t low = (uint32_t)i, high = low ^ 7;
        total = total * 3 + ((uint64_t)high << 32 | low);
    }
    return (int64_t)total;
}
