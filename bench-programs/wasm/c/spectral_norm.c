// Largest singular value of an endless matrix, cut off at the argument
// test: 270
// bench: 1400
#include "program.h"

enum { MAX = 2048 };

static double u[MAX], v[MAX], between[MAX];

static double element(int i, int j) {
    return 1.0 / (double)((i + j) * (i + j + 1) / 2 + i + 1);
}

static void times(const double *from, double *to, int n) {
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int j = 0; j < n; j++)
            sum += element(i, j) * from[j];
        to[i] = sum;
    }
}

static void times_transposed(const double *from, double *to, int n) {
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int j = 0; j < n; j++)
            sum += element(j, i) * from[j];
        to[i] = sum;
    }
}

int64_t run(int32_t n) {
    if (n > MAX)
        n = MAX;
    for (int i = 0; i < n; i++)
        u[i] = 1.0;
    for (int round = 0; round < 10; round++) {
        times(u, between, n);
        times_transposed(between, v, n);
        times(v, between, n);
        times_transposed(between, u, n);
    }
    double uv = 0.0, vv = 0.0;
    for (int i = 0; i < n; i++) {
        uv += u[i] * v[i];
        vv += v[i] * v[i];
    }
    return (int64_t)bits(__builtin_sqrt(uv / vv));
}
