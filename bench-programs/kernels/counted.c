#include <stdint.h>

int64_t counted(int64_t n, int64_t step) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i += step)
        total = (total ^ i) + 1;
    return total;
}
