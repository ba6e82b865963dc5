// The task of as_words.ts, with all words sorted before they are counted
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { WORDS = 1000, LONGEST = 16 };

static int compare(const void *a, const void *b) {
    return strcmp(a, b);
}

static uint64_t hash(const char *word) {
    uint64_t sum = 0;
    while (*word != 0)
        sum = mix(sum, (uint8_t)*word++);
    return sum;
}

int64_t run(int32_t rounds) {
    static const char *const SYLLABLES[9] = {"lo", "op", "he", "ad", "er", "la", "tch", "ex", "it"};
    static char words[WORDS][LONGEST];
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        uint32_t state = 23u + (uint32_t)round;
        for (int i = 0; i < WORDS; i++) {
            words[i][0] = 0;
            for (uint32_t j = 0; j <= next_random(&state) % 3u; j++)
                strcat(words[i], SYLLABLES[(next_random(&state) >> 5) % 9u]);
        }
        qsort(words, WORDS, LONGEST, compare);
        for (int i = 0, count; i < WORDS; i += count) {
            for (count = 1; i + count < WORDS && strcmp(words[i], words[i + count]) == 0;)
                count++;
            sum = mix(sum, hash(words[i]));
            sum = mix(sum, (uint64_t)count);
        }
    }
    return (int64_t)sum;
}
