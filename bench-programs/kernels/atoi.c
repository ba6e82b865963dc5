#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t atoi(const uint8_t *text, int64_t len) {
    uint64_t value = 0;
    for (int64_t i = 0; i < len; i++) {
        check(i, len);
        uint64_t digit = (uint64_t)text[i] - '0';
        if (digit > 9)
            break;
        value = value * 10 + digit;
    }
    return (int64_t)value;
}
