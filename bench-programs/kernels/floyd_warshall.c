#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void floyd_warshall(const int32_t *edges, int32_t *distance, int64_t n, int64_t len) {
    for (int64_t i = 0; i < n * n; i++) {
        check(i, len);
        distance[i] = edges[i];
    }
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++) {
                check(i * n + k, len);
                check(k * n + j, len);
                check(i * n + j, len);
                int32_t detour = distance[i * n + k] + distance[k * n + j];
                if (detour < distance[i * n + j])
                    distance[i * n + j] = detour;
            }
        }
    }
}
