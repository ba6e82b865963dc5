#include <stdint.h>

extern int64_t host_report(int64_t, int64_t);

int64_t rare_call(const int64_t *events, int64_t len, const int64_t *limit, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            int64_t x = events[i];
            if (x >= *limit)
                x = host_report(x, i);
            total += x;
        }
    }
    return total;
}
