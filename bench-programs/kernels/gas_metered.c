#include <stdint.h>

extern int64_t host_gas(int64_t);

int64_t gas_metered(const uint64_t *left, const uint64_t *right, int64_t len, int64_t gas, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0;; i++) {
            if (gas < 0)
                gas = host_gas(gas);
            if (i >= len)
                break;
            total += left[i] * right[i];
            gas -= 9;
        }
        gas -= 4;
    }
    return (int64_t)total;
}
