#include <stdint.h>

extern int64_t host_safepoint(int64_t);

int64_t safepoint_poll(uint64_t *to, const uint64_t *from, int64_t len, const int64_t *flag, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0;; i++) {
            if (__atomic_load_n(flag, __ATOMIC_SEQ_CST))
                host_safepoint(i);
            if (i >= len)
                break;
            to[i] += from[i] * 5;
            total += to[i];
        }
    }
    return (int64_t)total;
}
