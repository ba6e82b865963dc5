// SHA-256 of a message that is made on the way; each hash becomes part of the next message
// test: 39
// bench: 1000
// long: 15000
// levels: o0 o1 o2 o0-memory64 o2-memory64
#include "program.h"

enum { BLOCK = 64, MESSAGE = 16 * 1024 };

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static const uint32_t START[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint8_t message[MESSAGE + 2 * BLOCK];

#define ROTATE(x, count) ((x) >> (count) | (x) << (32 - (count)))

static void expand(uint32_t *words, const uint8_t *block) {
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
                   (uint32_t)block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        uint32_t low = ROTATE(a, 7) ^ ROTATE(a, 18) ^ a >> 3;
        uint32_t high = ROTATE(b, 17) ^ ROTATE(b, 19) ^ b >> 10;
        words[i] = words[i - 16] + low + words[i - 7] + high;
    }
}

static void compress(uint32_t *state, const uint8_t *block) {
    uint32_t words[64], s[8];
    expand(words, block);
    for (int i = 0; i < 8; i++)
        s[i] = state[i];
    for (int i = 0; i < 64; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t high = ROTATE(s[4], 6) ^ ROTATE(s[4], 11) ^ ROTATE(s[4], 25);
        uint32_t low = ROTATE(s[0], 2) ^ ROTATE(s[0], 13) ^ ROTATE(s[0], 22);
        uint32_t first = s[7] + high + choice + ROUND[i] + words[i];
        for (int j = 7; j > 0; j--)
            s[j] = s[j - 1];
        s[4] += first;
        s[0] = first + low + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

static void hash(uint32_t *state, uint8_t *text, size_t length) {
    for (int i = 0; i < 8; i++)
        state[i] = START[i];
    size_t end = (length + 8) / BLOCK * BLOCK + BLOCK;
    text[length] = 0x80;
    for (size_t i = length + 1; i < end - 8; i++)
        text[i] = 0;
    for (size_t i = 0; i < 8; i++)
        text[end - 1 - i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
    for (size_t i = 0; i < end; i += BLOCK)
        compress(state, text + i);
}

int64_t run(int32_t rounds) {
    uint32_t state[8];
    for (size_t i = 0; i < MESSAGE; i++)
        message[i] = (uint8_t)(i * 31 + i / 253);
    for (int32_t round = 0; round < rounds; round++) {
        hash(state, message, MESSAGE - (size_t)(round % 100));
        for (size_t i = 0; i < 32; i++)
            message[i + (size_t)round % 512] = (uint8_t)(state[i / 4] >> 8 * (i % 4));
    }
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum = mix(sum, state[i]);
    return (int64_t)sum;
}
