#include <stdint.h>

int64_t known_count(const int64_t *data, int64_t rows, int64_t columns, int64_t rounds) {
    uint64_t total = 0;
    if (columns != 4)
        return -1;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t row = 0; row < rows; row++) {
            for (int64_t column = 0; column < columns; column++)
                total ^= (uint64_t)data[row * columns + column] * 3 + 1;
        }
    }
    return (int64_t)total;
}
