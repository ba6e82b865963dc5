#include <stdint.h>

uint32_t crc32_branches(const uint8_t *data, int64_t len) {
    uint32_t crc = 0xFFFFFFFF;
    for (int64_t i = 0; i < len; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            if (crc & 1)
                crc = (crc >> 1) ^ 0xEDB88320;
            else
                crc >>= 1;
        }
    }
    return ~crc;
}
