#include <stdint.h>

struct state {
    int64_t len;
    uint64_t total;
};

void running_total(struct state *state, const uint64_t *data, int64_t len, int64_t rounds) {
    (void)len;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t count = state->len;
        for (int64_t i = 0; i < count; i++)
            state->total += data[i];
    }
}
