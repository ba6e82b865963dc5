// Shortest paths between all pairs of a directed graph
// test: 3
// bench: 78
// levels: o0 o1 o2 o2-simd o0-memory64 o2-memory64
#include "program.h"

enum { N = 128, FAR = 1000000 };

static int32_t distance[N][N];

static void make_graph(int32_t seed) {
    uint32_t state = 7u + (uint32_t)seed;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            distance[i][j] = i == j ? 0 : FAR;
    for (int edge = 0; edge < 6 * N; edge++) {
        uint32_t from = next_random(&state) % N, to = next_random(&state) % N;
        if (from != to)
            distance[from][to] = 1 + (int32_t)(next_random(&state) % 100u);
    }
}

static void shorten(void) {
    for (int k = 0; k < N; k++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                int32_t through = distance[i][k] + distance[k][j];
                if (through < distance[i][j])
                    distance[i][j] = through;
            }
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        make_graph(round);
        shorten();
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                sum = mix(sum, (uint64_t)distance[i][j]);
    }
    return (int64_t)sum;
}
