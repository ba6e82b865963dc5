#include <stdint.h>

int32_t extremes(const int32_t *data, int64_t len, int64_t rounds) {
    int32_t least = INT32_MAX, most = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            least = data[i] < least ? data[i] : least;
            most = data[i] > most ? data[i] : most;
        }
    }
    return (int32_t)((uint32_t)most - (uint32_t)least);
}
