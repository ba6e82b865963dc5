#include <stdint.h>

void row_sums(uint64_t *sums, const uint64_t *matrix, const uint64_t *vector, int64_t rows, int64_t columns,
              int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                sums[i] += matrix[i * columns + j] * vector[j];
}
