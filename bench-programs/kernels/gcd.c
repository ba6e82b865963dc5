#include <stdint.h>

int64_t gcd(int64_t n) {
    uint64_t total = 0;
    for (int64_t i = 1; i < n; i++) {
        uint64_t a = (uint64_t)i, b = (uint64_t)n;
        while (b != 0) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        total += a;
    }
    return (int64_t)total;
}
