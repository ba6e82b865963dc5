// The task of simd_mix.wat, one lane after the other
#include <string.h>

#include "program.h"

enum { SIZE = 16384 };

static uint8_t bytes[SIZE], reversed[SIZE];

static int32_t half(const uint8_t *at) {
    return (int16_t)(at[0] | at[1] << 8);
}

static uint64_t fold(const uint32_t *lanes) {
    return (lanes[0] ^ lanes[2]) | (uint64_t)(lanes[1] ^ lanes[3]) << 32;
}

static uint64_t dot(void) {
    uint32_t lanes[4] = {0, 0, 0, 0};
    for (int i = 0; i < SIZE; i += 2)
        lanes[i / 4 % 4] += (uint32_t)(half(bytes + i) * half(reversed + i));
    return fold(lanes);
}

static uint64_t floats(void) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    uint32_t lanes[4];
    for (int i = 0; i < 1024; i++) {
        float sum = sums[i % 4] * 0.5f + (float)bytes[i], least = (float)bytes[i] * 0.125f;
        sums[i % 4] = sum < least ? least : sum;
    }
    memcpy(lanes, sums, sizeof lanes);
    return fold(lanes);
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (uint32_t round = 0; round < (uint32_t)rounds; round++) {
        for (int i = 0; i < SIZE; i++)
            reversed[i] = bytes[i / 16 * 16 + 15 - i % 16];
        sum = sum * 31 + dot();
        sum = sum * 31 + floats();
        for (int i = 0; i < SIZE; i++)
            sum += bytes[i] > reversed[i];
        bytes[round * 33 % SIZE] = (uint8_t)round;
    }
    return (int64_t)sum;
}
