// Product of two matrices of doubles
// test: 11
// bench: 310
// long: 4500
// levels: o0 o1 o2 o2-simd o0-memory64 o2-memory64
#include "program.h"

enum { N = 96 };

static double a[N][N], b[N][N], c[N][N];

static void fill(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)((i * 7 + j * 3) % 11 - 5) * 0.125;
            b[i][j] = (double)((i * 5 + j * 13) % 17 - 8) * 0.0625;
        }
}

static void multiply(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0.0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

// The product becomes the next left side, scaled down so that it stays finite.
static void feed_back(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = c[i][j] * 0.015625 + (double)(i - j) * 0.001;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    fill();
    for (int round = 0; round < rounds; round++) {
        multiply();
        feed_back();
        sum = mix(sum, bits(c[round % N][(round * 31) % N]));
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum = mix(sum, bits(a[i][j]));
    return (int64_t)sum;
}
