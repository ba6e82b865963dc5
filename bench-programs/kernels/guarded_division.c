#include <stdint.h>

int64_t guarded_division(const int64_t *data, int64_t len, int64_t divisor, int64_t rounds) {
    uint64_t total = 0;
    if (divisor == 0)
        return -1;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            if (data[i] & 1)
                total += UINT64_C(1000000) / (uint64_t)divisor;
        }
    }
    return (int64_t)total;
}
