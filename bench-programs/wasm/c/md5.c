// MD5 of a message, again and again
// test: 120
// bench: 3300
#include "program.h"

enum { MESSAGE = 16 * 1024 };

static const uint8_t SHIFT[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t table[64];
static uint8_t message[MESSAGE];

// The numbers floor(2^32 |sin(i)|) for i of 1 to 64: sin and cos of 1, then the sum of angles, in 64 bits after the point.
static void make_table(void) {
    const double sine_one = 0.8414709848078965, cosine_one = 0.5403023058681398;
    double sine = sine_one, cosine = cosine_one;
    for (int i = 0; i < 64; i++) {
        double positive = sine < 0.0 ? -sine : sine;
        table[i] = (uint32_t)(positive * 4294967296.0);
        double next = sine * cosine_one + cosine * sine_one;
        cosine = cosine * cosine_one - sine * sine_one;
        sine = next;
    }
}

static uint32_t word(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t rotate(uint32_t x, unsigned count) {
    return x << count | x >> (32 - count);
}

static void compress(uint32_t *state, const uint8_t *block) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (unsigned i = 0; i < 64; i++) {
        uint32_t mixed;
        unsigned index;
        switch (i / 16) {
        case 0:
            mixed = (b & c) | (~b & d);
            index = i;
            break;
        case 1:
            mixed = (d & b) | (~d & c);
            index = (5 * i + 1) % 16;
            break;
        case 2:
            mixed = b ^ c ^ d;
            index = (3 * i + 5) % 16;
            break;
        default:
            mixed = c ^ (b | ~d);
            index = 7 * i % 16;
            break;
        }
        uint32_t turned = rotate(a + mixed + table[i] + word(block + 4 * index), SHIFT[i / 16][i % 4]);
        a = d;
        d = c;
        c = b;
        b += turned;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

int64_t run(int32_t rounds) {
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    make_table();
    for (size_t i = 0; i < MESSAGE; i++)
        message[i] = (uint8_t)(i * 7 + i / 100);
    for (int32_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < MESSAGE; i += 64)
            compress(state, message + i);
    return (int64_t)((uint64_t)state[0] << 32 ^ (uint64_t)state[1] << 20 ^ (uint64_t)state[2] << 10 ^ state[3]);
}
