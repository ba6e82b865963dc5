// What trap_bounds.wat has stored
#include "program.h"

enum { WORDS = 1048576, COUNT = 1000000 };

int64_t run(int32_t rounds) {
    static uint32_t words[WORDS];
    uint32_t sum = 0;
    uint64_t seen = 0;
    for (int i = 0; i < WORDS; i++)
        words[i] = 0;
    for (int32_t round = 1; round <= rounds; round++) {
        uint32_t *at = words + WORDS - COUNT + (round == rounds ? 2 : 0);
        for (uint32_t i = 0; i < COUNT && at < words + WORDS; i++) {
            sum = sum * 5 + i;
            *at++ = sum;
        }
    }
    for (int i = 0; i < WORDS; i++)
        seen = seen * 31 + words[i];
    return (int64_t)seen;
}
