#include <stdint.h>

int64_t downward(int64_t n) {
    uint64_t total = 0;
    for (uint64_t i = (uint64_t)n; i != 0; i--)
        total = total * 31 + i;
    return (int64_t)total;
}
