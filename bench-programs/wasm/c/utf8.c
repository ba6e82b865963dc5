// UTF-8: code points written and read again, with all errors found
// test: 13
// bench: 370
#include "program.h"

enum { POINTS = 20000, SIZE = POINTS * 4 };

static uint8_t text[SIZE];

static size_t encode(uint8_t *to, uint32_t point) {
    if (point < 0x80) {
        to[0] = (uint8_t)point;
        return 1;
    }
    if (point < 0x800) {
        to[0] = (uint8_t)(0xc0 | point >> 6);
        to[1] = (uint8_t)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        to[0] = (uint8_t)(0xe0 | point >> 12);
        to[1] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        to[2] = (uint8_t)(0x80 | (point & 0x3f));
        return 3;
    }
    to[0] = (uint8_t)(0xf0 | point >> 18);
    to[1] = (uint8_t)(0x80 | (point >> 12 & 0x3f));
    to[2] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
    to[3] = (uint8_t)(0x80 | (point & 0x3f));
    return 4;
}

// The code point at a place, or -1; moves on behind it, or by one byte.
static int32_t decode(const uint8_t *in, size_t length, size_t *at) {
    uint32_t first = in[(*at)++];
    if (first < 0x80)
        return (int32_t)first;
    size_t more = first < 0xc2 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : 0;
    if (more == 0 || *at + more > length)
        return -1;
    uint32_t point = first & (0x3fu >> more);
    for (size_t i = 0; i < more; i++) {
        uint32_t next = in[*at + i];
        if ((next & 0xc0) != 0x80)
            return -1;
        point = point << 6 | (next & 0x3f);
    }
    static const uint32_t LEAST[4] = {0, 0x80, 0x800, 0x10000};
    if (point < LEAST[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return -1;
    *at += more;
    return (int32_t)point;
}

static uint32_t random_point(uint32_t *state) {
    uint32_t random = next_random(state), kind = random % 16u;
    random >>= 8;
    if (kind < 9)
        return 0x20 + random % 0x5fu;
    if (kind < 12)
        return 0x80 + random % 0x780u;
    if (kind < 15)
        return 0x800 + random % 0xd000u;
    return 0x10000 + random % 0x100000u;
}

int64_t run(int32_t rounds) {
    uint32_t state = 88;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        size_t length = 0, at = 0;
        for (int i = 0; i < POINTS; i++)
            length += encode(text + length, random_point(&state));
        for (int i = 0; i < 50; i++)
            text[next_random(&state) % length] = (uint8_t)(next_random(&state) >> 9);
        uint32_t errors = 0, points = 0;
        while (at < length) {
            int32_t point = decode(text, length, &at);
            if (point < 0)
                errors++;
            else
                sum = mix(sum, (uint64_t)point);
            points++;
        }
        sum = mix(sum, (uint64_t)errors << 32 | points);
    }
    return (int64_t)sum;
}
