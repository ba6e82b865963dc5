#include <stdint.h>

int64_t rare_block(const int64_t *data, int64_t columns, int64_t rows, int64_t limit) {
    uint64_t total = 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < columns; i++) {
            uint64_t x = (uint64_t)data[i];
            if ((int64_t)x >= limit) {
                uint64_t a = (uint64_t)row * (uint64_t)columns, b = a * a, c = (b ^ (uint64_t)row) * a;
                x = ((c * b) ^ (uint64_t)limit) * c;
            }
            total += x;
        }
    }
    return (int64_t)total;
}
