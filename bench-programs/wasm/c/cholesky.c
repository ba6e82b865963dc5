// Cholesky decomposition of a positive definite matrix in one array
// test: 26
// bench: 720
#include "program.h"

enum { N = 128 };

static double matrix[N * N], lower[N * N];

static void fill(int32_t seed) {
    uint32_t state = 99u + (uint32_t)seed;
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++) {
            double value = (double)(next_random(&state) % 1000u) * 0.001;
            matrix[i * N + j] = value;
            matrix[j * N + i] = value;
        }
    for (size_t i = 0; i < N; i++)
        matrix[i * N + i] += (double)N;
}

static void decompose(const double *from, double *to, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = from[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= to[i * n + k] * to[j * n + k];
            to[i * n + j] = i == j ? __builtin_sqrt(sum) : sum / to[j * n + j];
        }
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        fill(round);
        decompose(matrix, lower, N);
        for (size_t i = 0; i < N; i++)
            sum = mix(sum, bits(lower[i * N + i / 2]));
    }
    return (int64_t)sum;
}
