#include <stdint.h>

int64_t boxed_lookup(const uint8_t *base, const int64_t *variable, int64_t count) {
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        if (*variable == 0)
            __builtin_trap();
        const int64_t *object = (const int64_t *)(base + *variable);
        total = (total ^ i) + object[1];
    }
    return total;
}
