#include <stdint.h>

int64_t mode_switch(const int64_t *data, int64_t len, int32_t mode, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            uint64_t x = (uint64_t)data[i];
            switch (mode) {
            case 0: total += x; break;
            case 1: total ^= x; break;
            case 2: total -= x; break;
            case 3: total = total * 3 + x; break;
            }
        }
    }
    return (int64_t)total;
}
