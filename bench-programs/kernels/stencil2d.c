#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void stencil2d(const double *data, double *output, int64_t len, int64_t rows, int64_t columns, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 1; i < rows - 1; i++) {
            for (int64_t j = 1; j < columns - 1; j++) {
                int64_t place = i * columns + j;
                check(place, len);
                check(place - columns, len);
                check(place + columns, len);
                check(place - 1, len);
                check(place + 1, len);
                double sum = data[place] + data[place - columns] + data[place + columns] + data[place - 1] + data[place + 1];
                output[place] = sum * 0.2;
            }
        }
    }
}
