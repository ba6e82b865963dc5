#include <stdint.h>

int64_t clamped_distance(const int64_t *a, const int64_t *b, int64_t len, int64_t limit) {
    int64_t total = 0;
    for (int64_t i = 0; i < len; i++) {
        int64_t distance = a[i] - b[i];
        if (distance < 0)
            distance = -distance;
        if (distance > limit)
            distance = limit;
        total += distance;
    }
    return total;
}
