#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void game_of_life(const uint8_t *old, uint8_t *new, int64_t width, int64_t height, int64_t len) {
    for (int64_t y = 1; y < height - 1; y++) {
        for (int64_t x = 1; x < width - 1; x++) {
            int64_t sum = 0;
            for (int64_t dy = -1; dy < 2; dy++) {
                for (int64_t dx = -1; dx < 2; dx++) {
                    int64_t place = (y + dy) * width + x + dx;
                    check(place, len);
                    sum += old[place];
                }
            }
            int64_t place = y * width + x;
            check(place, len);
            int64_t alive = old[place];
            new[place] = ((sum - alive) | alive) == 3;
        }
    }
}
