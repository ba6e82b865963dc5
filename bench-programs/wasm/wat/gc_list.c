// The task of gc_list.wat, in arrays
#include "program.h"

enum { A = 40, B = 30 };

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        int64_t merged[A + B];
        for (int i = 0, j = 0; i + j < A + B;) {
            int64_t a = round + 3 * (int64_t)i, b = 5 + 4 * (int64_t)j;
            int is_a = j == B || (i < A && a <= b);
            merged[i + j] = is_a ? a : b;
            i += is_a;
            j += !is_a;
        }
        for (int i = 0; i < A + B; i++)
            sum = sum * 31 + (uint64_t)merged[i];
        for (int i = A + B - 1; i >= 0; i--)
            sum = sum * 31 + (uint64_t)(merged[i] + 1);
    }
    return (int64_t)sum;
}
