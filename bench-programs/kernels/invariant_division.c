#include <stdint.h>

int64_t invariant_division(uint64_t a, uint64_t b, uint64_t count) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++)
        total = (total ^ i) + a / b;
    return (int64_t)total;
}
