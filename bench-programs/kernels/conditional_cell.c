#include <stdint.h>

int64_t conditional_cell(uint64_t *hits, int64_t n) {
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (((state >> 33) & 3) == 0)
            *hits += state >> 40;
    }
    return (int64_t)state;
}
