#include <stdint.h>

void recurrence(uint64_t *a, const uint64_t *b, uint64_t k, int64_t len, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++)
        for (int64_t i = 1; i < len; i++)
            a[i] = a[i - 1] * k + b[i];
}
