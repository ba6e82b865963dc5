#include <stdint.h>

extern int64_t host_epoch(int64_t, int64_t);

int64_t epoch_poll(const int64_t *data, int64_t len, const volatile int64_t *epoch, int64_t deadline, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < len; i++) {
            int64_t now = *epoch;
            if (now >= deadline)
                deadline = host_epoch(now, deadline);
            total += data[i];
        }
    }
    return total;
}
