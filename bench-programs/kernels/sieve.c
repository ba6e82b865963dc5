#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t sieve(uint8_t *flags, int64_t flags_len, int64_t len) {
    int64_t count = 0;
    for (int64_t i = 0; i < len; i++) {
        check(i, flags_len);
        flags[i] = 1;
    }
    for (int64_t i = 2; i < len; i++) {
        check(i, flags_len);
        if (flags[i]) {
            count++;
            for (int64_t j = i * i; j < len; j += i) {
                check(j, flags_len);
                flags[j] = 0;
            }
        }
    }
    return count;
}
