// Primes by a sieve of bytes and one of bits, and the largest gap between them
// test: 2
// bench: 65
#include "program.h"

enum { LIMIT = 400000 };

static uint8_t composite[LIMIT];
static uint32_t marks[LIMIT / 64 + 1];

static int sieve_bytes(int limit) {
    int count = 0;
    for (int i = 0; i < limit; i++)
        composite[i] = 0;
    for (int i = 2; i < limit; i++) {
        if (composite[i])
            continue;
        count++;
        for (int64_t j = (int64_t)i * i; j < limit; j += i)
            composite[j] = 1;
    }
    return count;
}

// Odd numbers only: bit k of the marks stands for 2k + 1.
static int sieve_bits(int limit) {
    int count = limit > 2;
    for (int i = 0; i < LIMIT / 64 + 1; i++)
        marks[i] = 0;
    for (uint32_t i = 3; i < (uint32_t)limit; i += 2) {
        if (marks[i >> 6] >> (i >> 1 & 31) & 1)
            continue;
        count++;
        for (uint64_t j = (uint64_t)i * i; j < (uint64_t)limit; j += 2 * i)
            marks[j >> 6] |= 1u << (j >> 1 & 31);
    }
    return count;
}

static int largest_gap(int limit) {
    int last = 2, gap = 0;
    for (int i = 3; i < limit; i++)
        if (!composite[i]) {
            if (i - last > gap)
                gap = i - last;
            last = i;
        }
    return gap;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        int limit = LIMIT - round * 3 % 1000;
        int count = sieve_bytes(limit);
        if (sieve_bits(limit) != count)
            return -1;
        sum = mix(sum, (uint64_t)count << 8 | (uint64_t)largest_gap(limit));
    }
    return (int64_t)sum;
}
