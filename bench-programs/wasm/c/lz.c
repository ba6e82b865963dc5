// Compression of text by references to what came before, and decompression
// test: 5
// bench: 140
// levels: o0 o1 o2 o0-memory64 o2-memory64
#include "program.h"

enum { SIZE = 128 * 1024, HASHES = 4096, SHORTEST = 4, LONGEST = 255, FARTHEST = 65535 };

static uint8_t text[SIZE], packed[SIZE * 2], unpacked[SIZE + LONGEST];
static int32_t heads[HASHES];

static const char *const WORDS[16] = {
    "loop ", "header ", "latch ", "the ", "of ", "invariant ", "exit ", "a ",
    "block\n", "value ", "is ", "not ", "preheader ", "and ", "memory. ", "trip ",
};

static void write_text(uint32_t seed) {
    uint32_t state = seed;
    size_t at = 0;
    while (at < SIZE) {
        const char *word = WORDS[next_random(&state) >> 7 & 15];
        while (*word != 0 && at < SIZE)
            text[at++] = (uint8_t)*word++;
    }
}

static uint32_t hash(const uint8_t *at) {
    uint32_t word = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    return word * 2654435761u >> 20;
}

static size_t put_literals(uint8_t *to, size_t out, const uint8_t *from, size_t count) {
    while (count > 0) {
        size_t part = count < 127 ? count : 127;
        to[out++] = (uint8_t)part;
        for (size_t i = 0; i < part; i++)
            to[out++] = *from++;
        count -= part;
    }
    return out;
}

static size_t match(const uint8_t *a, const uint8_t *b, const uint8_t *end) {
    size_t length = 0;
    while (b + length < end && length < LONGEST && a[length] == b[length])
        length++;
    return length;
}

static size_t compress(uint8_t *to, const uint8_t *from, size_t size) {
    size_t out = 0, literals = 0, at = 0;
    for (int i = 0; i < HASHES; i++)
        heads[i] = -1;
    while (at + SHORTEST <= size) {
        uint32_t slot = hash(from + at);
        int32_t earlier = heads[slot];
        heads[slot] = (int32_t)at;
        size_t length = 0;
        if (earlier >= 0 && at - (size_t)earlier <= FARTHEST)
            length = match(from + earlier, from + at, from + size);
        if (length < SHORTEST) {
            at++;
            continue;
        }
        size_t distance = at - (size_t)earlier;
        out = put_literals(to, out, from + literals, at - literals);
        to[out++] = 128;
        to[out++] = (uint8_t)length;
        to[out++] = (uint8_t)distance;
        to[out++] = (uint8_t)(distance >> 8);
        at += length;
        literals = at;
    }
    return put_literals(to, out, from + literals, size - literals);
}

static size_t decompress(uint8_t *to, const uint8_t *from, size_t size) {
    size_t out = 0, at = 0;
    while (at < size) {
        size_t head = from[at++];
        if (head < 128) {
            for (size_t i = 0; i < head; i++)
                to[out++] = from[at++];
            continue;
        }
        size_t length = from[at], distance = (size_t)from[at + 1] | (size_t)from[at + 2] << 8;
        at += 3;
        for (size_t i = 0; i < length; i++, out++)
            to[out] = to[out - distance];
    }
    return out;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        write_text(17u + (uint32_t)round);
        size_t size = compress(packed, text, SIZE);
        if (decompress(unpacked, packed, size) != SIZE)
            return -1;
        for (size_t i = 0; i < SIZE; i++)
            if (text[i] != unpacked[i])
                return -2;
        for (size_t i = 0; i < size; i += 97)
            sum = mix(sum, packed[i]);
        sum = mix(sum, size);
    }
    return (int64_t)sum;
}
