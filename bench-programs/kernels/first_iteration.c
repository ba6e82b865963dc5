#include <stdint.h>

int64_t first_iteration(const uint16_t *data, int64_t len) {
    int64_t total = 0, before = 0;
    int first = 1;
    for (int64_t i = 0; i < len; i++) {
        int64_t difference = data[i] - before;
        if (!first)
            total += difference < 0 ? -difference : difference;
        first = 0;
        before = data[i];
    }
    return total;
}
