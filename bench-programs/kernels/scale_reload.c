#include <stdint.h>

void scale_reload(int64_t *output, const int64_t *data, int64_t scale, int64_t len, int64_t rounds) {
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++)
            output[i] = (int64_t)((uint64_t)data[i] * (uint64_t)output[scale]);
    }
}
