#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

extern int64_t host_report(int64_t, int64_t);

struct cells {
    int64_t start, len, scale;
};

static inline int64_t element(const struct cells *cells, int64_t limit, int64_t index) {
    const int64_t *data = (const int64_t *)((const char *)cells + cells->start);
    check(index, cells->len);
    int64_t x = data[index], term = x * cells->scale;
    return x >= limit ? host_report(term, index) : term;
}

int64_t rare_nest(const struct cells *cells, int64_t limit, int64_t rows, int64_t columns, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < columns; j++)
                total += element(cells, limit, i * columns + j);
        }
    }
    return total;
}
