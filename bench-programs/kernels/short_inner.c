#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

double short_inner(const double *points, int64_t len, int64_t count, int64_t rounds) {
    double largest = 0.0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i++) {
            double norm = 0.0;
            for (int64_t axis = 0; axis < 3; axis++) {
                check(3 * i + axis, len);
                norm += points[3 * i + axis] * points[3 * i + axis];
            }
            largest = norm > largest ? norm : largest;
        }
    }
    return largest;
}
