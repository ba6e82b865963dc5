// The task of multi_value.wat
#include "program.h"

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t fibonacci_xor(uint32_t n) {
    uint64_t a = 0, b = 1;
    for (; n > 0; n--) {
        uint64_t next = a + b;
        a = b;
        b = next;
    }
    return a ^ b;
}

static uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
    uint64_t result = 1;
    for (; exponent != 0; exponent >>= 1, base = base * base % modulus)
        if (exponent & 1)
            result = result * base % modulus;
    return result;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < (uint32_t)rounds; i++) {
        sum = sum * 31 + gcd((uint64_t)i * 360360, 720720000);
        sum += fibonacci_xor(i % 100);
        sum += power(i, 65537, 999983) + 17; // 17 bits of 65537
    }
    return (int64_t)sum;
}
