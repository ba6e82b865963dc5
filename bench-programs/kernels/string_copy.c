#include <stdint.h>

void string_copy(const uint8_t *text, uint8_t *copy) {
    uint8_t byte;
    do {
        byte = *text++;
        *copy++ = byte;
    } while (byte != 0);
}
