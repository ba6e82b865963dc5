// The task of number_mix.wat
#include <math.h>

#include "program.h"

static int32_t saturate32(float value) {
    return value >= 2147483648.0f ? INT32_MAX : value < -2147483648.0f ? INT32_MIN : (int32_t)value;
}

static int64_t saturate64(double value) {
    return value >= 9223372036854775808.0 ? INT64_MAX : value < -9223372036854775808.0 ? INT64_MIN : (int64_t)value;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    float number = 0.0f;
    double root = 0.5;
    for (uint32_t i = 0; i < (uint32_t)rounds; i++) {
        uint32_t word = (i << 7 | i >> 25) ^ (uint32_t)sum;
        number = number * 0.75f + (float)(int32_t)word;
        root = copysign(sqrt(fabs(root) + (double)(sum & 65535)), (double)number);
        sum = sum * 31 + (uint64_t)(int64_t)saturate32(number);
        sum ^= (uint64_t)saturate64(root * 65536.0);
        sum += (uint64_t)(int64_t)(int16_t)word;
        sum += (uint64_t)((word == 0 ? 32 : __builtin_clz(word)) + __builtin_popcount(word));
        sum += (uint64_t)__builtin_ctzll(sum | 4096);
        sum = floor(root) < nearbyint(root) ? sum + 1 : sum >> 3 | sum << 61;
        number = (float)fmax((double)number, -root);
    }
    return (int64_t)(sum ^ bits(root));
}
