#include <stdint.h>

int64_t overwritten_store(int64_t *progress, int64_t n) {
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        *progress = i;
        total = (total ^ (uint64_t)i) + 5;
    }
    return (int64_t)total;
}
