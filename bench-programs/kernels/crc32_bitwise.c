#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int32_t crc32_bitwise(const uint8_t *data, int64_t len) {
    uint32_t crc = 0xffffffff;
    for (int64_t i = 0; i < len; i++) {
        check(i, len);
        crc ^= data[i];
        for (int64_t bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (-(crc & 1) & 0xedb88320);
    }
    return (int32_t)~crc;
}
