#include <stdint.h>

int64_t small_matrices(const int64_t *left, const int64_t *right, int64_t count, int64_t size) {
    uint64_t total = 0;
    for (int64_t number = 0; number < count; number++) {
        const int64_t *matrix = left + number * size * size;
        for (int64_t i = 0; i < size; i++) {
            for (int64_t j = 0; j < size; j++) {
                int64_t sum = 0;
                for (int64_t k = 0; k < size; k++)
                    sum += matrix[i * size + k] * right[k * size + j];
                total = total * 3 ^ (uint64_t)sum;
            }
        }
    }
    return (int64_t)total;
}
