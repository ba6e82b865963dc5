#include <stdint.h>

int64_t slots(int64_t n) {
    uint64_t total = 1;
    for (int64_t i = 0; i < n; i++)
        total = total * 3 + (uint64_t)i;
    return (int64_t)total;
}
