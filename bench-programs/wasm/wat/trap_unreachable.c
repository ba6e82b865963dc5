// What trap_unreachable.wat has stored
#include "program.h"

enum { WORDS = 16384 };

int64_t run(int32_t count) {
    static uint32_t sums[WORDS], last[WORDS];
    for (int i = 0; i < WORDS; i++)
        sums[i] = last[i] = 0;
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        uint32_t at = (i * 12 & 65532) / 4;
        sums[at] += i * 7 % 1000;
        last[at] = i;
    }
    sums[((uint32_t)count * 12 & 65532) / 4] += 5000;
    uint64_t seen = 0;
    for (int i = 0; i < WORDS; i++)
        seen = seen * 31 + sums[i];
    for (int i = 0; i < WORDS; i++)
        seen = seen * 31 + last[i];
    return (int64_t)seen;
}
