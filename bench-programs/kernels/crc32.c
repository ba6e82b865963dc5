#include <stdint.h>

int32_t crc32(const uint8_t *data, int64_t len, const uint32_t *table) {
    uint32_t crc = 0xffffffff;
    for (int64_t i = 0; i < len; i++)
        crc = (crc >> 8) ^ table[(crc ^ data[i]) & 255];
    return (int32_t)~crc;
}
