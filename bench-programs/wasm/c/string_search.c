// Search in text: naive, Knuth-Morris-Pratt and Horspool; all three must agree
// test: 2
// bench: 49
#include "program.h"

enum { SIZE = 200000, LONGEST = 32 };

static char text[SIZE + 1];

static size_t naive(const char *in, size_t length, const char *what, size_t size) {
    size_t found = 0;
    for (size_t i = 0; i + size <= length; i++) {
        size_t j = 0;
        while (j < size && in[i + j] == what[j])
            j++;
        found += j == size;
    }
    return found;
}

static size_t knuth_morris_pratt(const char *in, const char *what, size_t size) {
    size_t border[LONGEST + 1], found = 0;
    border[0] = 0;
    border[1] = 0;
    for (size_t i = 1, j = 0; i < size; i++) {
        while (j > 0 && what[i] != what[j])
            j = border[j];
        j += what[i] == what[j];
        border[i + 1] = j;
    }
    for (size_t j = 0; *in != 0; in++) {
        while (j > 0 && (j == size || *in != what[j]))
            j = border[j];
        j += *in == what[j];
        found += j == size;
    }
    return found;
}

static size_t horspool(const char *in, size_t length, const char *what, size_t size) {
    size_t skip[256], found = 0;
    for (int i = 0; i < 256; i++)
        skip[i] = size;
    for (size_t i = 0; i + 1 < size; i++)
        skip[(uint8_t)what[i]] = size - 1 - i;
    for (size_t i = 0; i + size <= length; i += skip[(uint8_t)in[i + size - 1]]) {
        size_t j = size;
        while (j > 0 && in[i + j - 1] == what[j - 1])
            j--;
        found += j == 0;
    }
    return found;
}

int64_t run(int32_t rounds) {
    uint32_t state = 8;
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (char)('a' + __builtin_ctz(next_random(&state) | 16));
    text[SIZE] = 0;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        size_t size = 2 + (size_t)round % 9, at = (size_t)round * 4099 % (SIZE - LONGEST);
        const char *what = text + at;
        size_t found = naive(text, SIZE, what, size);
        if (knuth_morris_pratt(text, what, size) != found || horspool(text, SIZE, what, size) != found)
            return -1;
        sum = mix(sum, found);
    }
    return (int64_t)sum;
}
