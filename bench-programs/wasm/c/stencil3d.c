// A wave in a box: a stencil of seven points of floats, in flat arrays of computed size
// test: 25
// bench: 720
#include "program.h"

enum { N = 48 };

static float now[N * N * N], before[N * N * N], after[N * N * N];

static size_t at(size_t x, size_t y, size_t z) {
    return (z * N + y) * N + x;
}

static void step(void) {
    for (size_t z = 1; z < N - 1; z++)
        for (size_t y = 1; y < N - 1; y++)
            for (size_t x = 1; x < N - 1; x++) {
                size_t i = (z * N + y) * N + x;
                float sum = now[i - 1] + now[i + 1] + now[i - N] + now[i + N] + now[i - N * N] + now[i + N * N];
                after[i] = 2.0f * now[i] - before[i] + 0.1f * (sum - 6.0f * now[i]);
            }
    for (size_t i = 0; i < N * N * N; i++) {
        before[i] = now[i];
        now[i] = after[i];
    }
}

int64_t run(int32_t steps) {
    for (size_t i = 0; i < N * N * N; i++)
        now[i] = before[i] = after[i] = 0.0f;
    now[at(N / 2, N / 3, N / 4)] = 1.0f;
    now[at(N / 4, N / 2, N / 3)] = -0.5f;
    for (int32_t i = 0; i < steps; i++)
        step();
    uint64_t sum = 0;
    for (size_t i = 0; i < N * N * N; i += 7)
        sum = mix(sum, bits((double)now[i]));
    return (int64_t)sum;
}
