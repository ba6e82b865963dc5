// The task of as_matrix.ts
#include "program.h"

enum { ROWS = 48, COLUMNS = 64 };

int64_t run(int32_t rounds) {
    static double left[ROWS][COLUMNS], right[COLUMNS][ROWS], product[ROWS][ROWS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            left[i][j] = (double)((i * 7 + j * 3) % 11 - 5) * 0.125;
            right[j][i] = (double)((i * 5 + j * 13) % 17 - 8) * 0.0625;
        }
    uint64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < ROWS; j++) {
                double cell = 0.0;
                for (int k = 0; k < COLUMNS; k++)
                    cell += left[i][k] * right[k][j];
                product[i][j] = cell;
            }
        for (int i = 0; i < ROWS; i++) {
            double row = 0.0;
            for (int j = 0; j < ROWS; j++)
                row += product[j][i] * (double)(j + 1);
            sum = mix(sum, bits(row));
            left[i][round % COLUMNS] = (double)(i - round % 50) * 0.25;
        }
    }
    return (int64_t)sum;
}
