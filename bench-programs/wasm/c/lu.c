// Linear equations by LU decomposition with partial pivoting
// test: 15
// bench: 400
#include "program.h"

enum { N = 120 };

static double a[N][N], x[N], b[N];
static int order[N];

static double absolute(double value) {
    return value < 0.0 ? -value : value;
}

static void fill(int32_t seed) {
    uint32_t state = 12345u + (uint32_t)seed;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            a[i][j] = (double)(next_random(&state) % 2001u) * 0.001 - 1.0;
        b[i] = (double)(next_random(&state) % 1000u) * 0.01;
        order[i] = i;
    }
}

static void swap_rows(int i, int j) {
    for (int k = 0; k < N; k++) {
        double kept = a[i][k];
        a[i][k] = a[j][k];
        a[j][k] = kept;
    }
    int kept = order[i];
    order[i] = order[j];
    order[j] = kept;
}

static int pivot(int column) {
    int best = column;
    for (int i = column + 1; i < N; i++)
        if (absolute(a[i][column]) > absolute(a[best][column]))
            best = i;
    return best;
}

static void decompose(void) {
    for (int k = 0; k < N; k++) {
        int best = pivot(k);
        if (best != k)
            swap_rows(k, best);
        for (int i = k + 1; i < N; i++) {
            double factor = a[i][k] / a[k][k];
            a[i][k] = factor;
            for (int j = k + 1; j < N; j++)
                a[i][j] -= factor * a[k][j];
        }
    }
}

static void solve(void) {
    for (int i = 0; i < N; i++) {
        double sum = b[order[i]];
        for (int j = 0; j < i; j++)
            sum -= a[i][j] * x[j];
        x[i] = sum;
    }
    for (int i = N - 1; i >= 0; i--) {
        double sum = x[i];
        for (int j = i + 1; j < N; j++)
            sum -= a[i][j] * x[j];
        x[i] = sum / a[i][i];
    }
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        fill(round);
        decompose();
        solve();
        for (int i = 0; i < N; i++)
            sum = mix(sum, bits(x[i]));
    }
    return (int64_t)sum;
}
