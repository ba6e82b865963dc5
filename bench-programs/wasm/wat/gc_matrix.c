// The task of gc_matrix.wat
#include "program.h"

enum { N = 50 };

int64_t run(int32_t rounds) {
    static double a[N][N], b[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = 0.125 * ((i * 7 + j * 3) % 13);
            b[i][j] = 0.125 * ((i * 5 + j * 11) % 13);
        }
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        int at = round % N;
        double cell = 0.0;
        for (int k = 0; k < N; k++)
            cell += a[at][k] * b[k][at];
        sum = sum * 31 + bits(cell);
        a[at][at] = (double)round;
    }
    return (int64_t)sum;
}
