// Base64, encoded and decoded again
// test: 20
// bench: 560
#include "program.h"

enum { SIZE = 96 * 1024 };

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint8_t plain[SIZE], decoded[SIZE + 4];
static char encoded[SIZE * 4 / 3 + 8];
static int8_t values[256];

static size_t encode(char *to, const uint8_t *from, size_t length) {
    size_t out = 0;
    for (size_t i = 0; i < length; i += 3) {
        uint32_t group = (uint32_t)from[i] << 16;
        if (i + 1 < length)
            group |= (uint32_t)from[i + 1] << 8;
        if (i + 2 < length)
            group |= from[i + 2];
        to[out++] = DIGITS[group >> 18];
        to[out++] = DIGITS[group >> 12 & 63];
        to[out++] = i + 1 < length ? DIGITS[group >> 6 & 63] : '=';
        to[out++] = i + 2 < length ? DIGITS[group & 63] : '=';
    }
    return out;
}

static void make_values(void) {
    for (int i = 0; i < 256; i++)
        values[i] = -1;
    for (int i = 0; i < 64; i++)
        values[(uint8_t)DIGITS[i]] = (int8_t)i;
}

static size_t decode(uint8_t *to, const char *from, size_t length) {
    size_t out = 0;
    uint32_t group = 0;
    int bits_held = 0;
    for (size_t i = 0; i < length; i++) {
        int value = values[(uint8_t)from[i]];
        if (value < 0)
            break;
        group = group << 6 | (uint32_t)value;
        bits_held += 6;
        if (bits_held >= 8) {
            bits_held -= 8;
            to[out++] = (uint8_t)(group >> bits_held);
        }
    }
    return out;
}

int64_t run(int32_t rounds) {
    make_values();
    for (size_t i = 0; i < SIZE; i++)
        plain[i] = (uint8_t)(i * i >> 4);
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        size_t length = SIZE - (size_t)(round % 5);
        size_t coded = encode(encoded, plain, length);
        if (decode(decoded, encoded, coded) != length)
            return -1;
        for (size_t i = 0; i < length; i++)
            if (plain[i] != decoded[i])
                return -2;
        sum = mix(sum, (uint64_t)encoded[coded - 2 - (size_t)round % 1000]);
        plain[(size_t)round * 7 % SIZE] += 3;
    }
    return (int64_t)sum;
}
