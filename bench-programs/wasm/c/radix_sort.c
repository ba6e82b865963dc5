// Radix sort of 32-bit numbers by four counting passes
// test: 6
// bench: 180
#include "program.h"

enum { SIZE = 100000 };

static uint32_t keys[SIZE], other[SIZE];

static void pass(const uint32_t *from, uint32_t *to, unsigned shift) {
    uint32_t starts[256];
    for (int i = 0; i < 256; i++)
        starts[i] = 0;
    for (int i = 0; i < SIZE; i++)
        starts[from[i] >> shift & 255]++;
    uint32_t start = 0;
    for (int i = 0; i < 256; i++) {
        uint32_t count = starts[i];
        starts[i] = start;
        start += count;
    }
    for (int i = 0; i < SIZE; i++)
        to[starts[from[i] >> shift & 255]++] = from[i];
}

int64_t run(int32_t rounds) {
    uint32_t state = 3;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZE; i++)
            keys[i] = next_random(&state);
        for (unsigned shift = 0; shift < 32; shift += 16) {
            pass(keys, other, shift);
            pass(other, keys, shift + 8);
        }
        for (int i = 1; i < SIZE; i++)
            if (keys[i - 1] > keys[i])
                return -1;
        for (int i = 0; i < SIZE; i += 501)
            sum = mix(sum, keys[i]);
    }
    return (int64_t)sum;
}
