#include <stdbool.h>
#include <stdint.h>

int64_t stop_flag(const int64_t *data, int64_t len, int64_t limit, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = 0;
        bool stop = false;
        while (!stop) {
            if (data[i] > limit) {
                stop = true;
            } else {
                total += (uint64_t)data[i];
                i++;
                if (i == len)
                    stop = true;
            }
        }
    }
    return (int64_t)total;
}
