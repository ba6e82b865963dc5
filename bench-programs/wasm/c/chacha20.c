// ChaCha20: text encrypted and decrypted again
// test: 10
// bench: 450
// levels: o0 o1 o2 o2-simd
#include "program.h"

enum { SIZE = 16 * 1024, ROUNDS = 20 };

static uint8_t text[SIZE];

static uint32_t rotate(uint32_t x, int count) {
    return x << count | x >> (32 - count);
}

static void quarter(uint32_t *s, int a, int b, int c, int d) {
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 16);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 12);
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 8);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 7);
}

static void make_block(const uint32_t *state, uint8_t *block) {
    uint32_t work[16];
    for (int i = 0; i < 16; i++)
        work[i] = state[i];
    for (int round = 0; round < ROUNDS; round += 2) {
        for (int i = 0; i < 4; i++)
            quarter(work, i, i + 4, i + 8, i + 12);
        for (int i = 0; i < 4; i++)
            quarter(work, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12);
    }
    for (int i = 0; i < 16; i++) {
        uint32_t word = work[i] + state[i];
        for (int j = 0; j < 4; j++)
            block[4 * i + j] = (uint8_t)(word >> 8 * j);
    }
}

static void encrypt(uint8_t *bytes, size_t size, const uint32_t *key, uint32_t nonce) {
    uint32_t state[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    uint8_t block[64];
    for (int i = 0; i < 8; i++)
        state[4 + i] = key[i];
    state[12] = 1;
    state[13] = state[14] = 0;
    state[15] = nonce;
    for (size_t at = 0; at < size; at += 64) {
        make_block(state, block);
        for (size_t i = 0; i < 64 && at + i < size; i++)
            bytes[at + i] ^= block[i];
        state[12]++;
    }
}

int64_t run(int32_t rounds) {
    uint32_t key[8], random = 21;
    uint64_t sum = 0;
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (uint8_t)(i % 251);
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < 8; i++)
            key[i] = next_random(&random);
        size_t size = SIZE - (size_t)round % 64;
        encrypt(text, size, key, (uint32_t)round);
        for (size_t i = 0; i < SIZE; i += 61)
            sum = mix(sum, text[i]);
        encrypt(text, size, key, (uint32_t)round);
    }
    for (size_t i = 0; i < SIZE; i++)
        if (text[i] != i % 251)
            return -1;
    return (int64_t)sum;
}
