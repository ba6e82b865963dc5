#include <stdint.h>

void column_sums(const int32_t *table, int32_t *sums, int64_t rows, int64_t columns, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t column = 0; column < columns; column++) {
            int32_t sum = 0;
            for (int64_t row = 0; row < rows; row++)
                sum += table[row * columns + column];
            sums[column] = sum;
        }
    }
}
