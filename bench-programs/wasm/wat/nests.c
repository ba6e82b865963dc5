// The task of nests.wat
#include <string.h>

#include "program.h"

enum { WORDS = 1024 };

static uint32_t words[WORDS];

static void deep(int n) {
    for (int a = 0; a < n; a++)
        for (int b = 0; b <= a; b++)
            for (int c = b; c < n; c += 2)
                for (int d = 0; d < 3; d++)
                    for (int e = n; e > c; e--)
                        for (int f = 1; f <= 8; f *= 2) {
                            for (int g = 0; g < d; g++)
                                words[(a * f + b + e) % WORDS] = (uint32_t)(c * 3 + g);
                            words[(f + c) % WORDS] += (uint32_t)e;
                        }
}

static uint64_t wide(void) {
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += words[i];
    for (int i = 0; i < WORDS; i += 2) {
        uint64_t both = (words[i] | (uint64_t)words[i + 1] << 32) + 1;
        words[i] = (uint32_t)both;
        words[i + 1] = (uint32_t)(both >> 32);
    }
    for (uint32_t i = 0; i < WORDS; i += 4)
        words[i] = (words[i] & ~255u) | (i * 4 & 255);
    for (int i = 0; i < WORDS; i++) {
        sum = sum * 31 + (words[i] & 65535);
        sum = sum * 31 + (words[i] >> 16);
    }
    return sum;
}

int64_t run(int32_t n) {
    uint64_t sum = 0;
    memset(words, 0, sizeof words);
    for (int round = 0; round < 20; round++) {
        deep(n);
        sum = sum * 7 ^ wide();
    }
    return (int64_t)sum;
}
