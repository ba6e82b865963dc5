#include <stdint.h>

int64_t early_exit(const int32_t *data, int64_t len, int32_t wanted, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = 0;
        while (i < len && data[i] != wanted)
            i++;
        total += i;
    }
    return total;
}
