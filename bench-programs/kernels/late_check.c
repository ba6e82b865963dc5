#include <stdint.h>

int64_t late_check(const int64_t *data, int64_t len, int64_t count, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = 0;
        for (; i < count; i++) {
            if ((uint64_t)i >= (uint64_t)len)
                break;
            total += (uint64_t)data[i];
        }
        total += (uint64_t)i;
    }
    return (int64_t)total;
}
