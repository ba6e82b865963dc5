#include <stdint.h>

int64_t string_length(const uint8_t *text) {
    int64_t i = 0;
    while (text[i] != 0) {
        i++;
        __asm__("" : "+r"(i)); /* or else it becomes a call of strlen */
    }
    return i;
}
