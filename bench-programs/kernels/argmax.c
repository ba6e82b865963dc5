#include <stdint.h>

int64_t argmax(const int64_t *data, int64_t len, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t best = -1, place = -1;
        for (int64_t i = 0; i < len; i++) {
            if (data[i] > best) {
                best = data[i];
                place = i;
            }
        }
        total += place;
    }
    return total;
}
