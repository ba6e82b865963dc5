// The task of memory64_sums.wat
#include "program.h"

enum { COUNT = 20000, PAGES = 8 };

int64_t run(int32_t rounds) {
    static uint64_t cells[COUNT];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < COUNT; i++)
        cells[i] = i * i;
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 1; i < COUNT; i++)
            cells[i] += cells[i - 1];
        for (int i = COUNT - 2; i >= 0; i--)
            cells[i] ^= cells[i + 1];
        sum = sum * 31 + cells[round % COUNT];
    }
    return (int64_t)(sum + PAGES);
}
