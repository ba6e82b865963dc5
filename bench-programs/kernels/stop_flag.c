#include <stdint.h>

int64_t stop_flag(const int64_t *data, int64_t len, int64_t limit, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = 0;
        int stop = 0;
        while (!stop) {
            if (data[i] > limit) {
                stop = 1;
            } else {
                total += (uint64_t)data[i];
                i++;
                if (i == len)
                    stop = 1;
            }
        }
    }
    return (int64_t)total;
}
