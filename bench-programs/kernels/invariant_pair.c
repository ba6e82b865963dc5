#include <stdint.h>

int64_t invariant_pair(uint64_t start, uint64_t len, int64_t n) {
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t end;
        if (__builtin_add_overflow(start, len, &end))
            __builtin_trap();
        total = (total ^ (uint64_t)i) + end;
    }
    return (int64_t)total;
}
