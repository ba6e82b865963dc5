#include <stdint.h>

int64_t numbered(int64_t count) {
    uint64_t total = 0;
    for (int64_t i = 0; i < count; i++)
        total = total * (uint64_t)(i + 1) + (uint64_t)i;
    return (int64_t)total;
}
