#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

static inline int64_t min(int64_t x, int64_t y) {
    return x < y ? x : y;
}

int64_t edit_distance(const uint8_t *a, int64_t a_len, const uint8_t *b, int64_t b_len, int64_t *rows, int64_t rows_len) {
    int64_t width = b_len + 1, previous = 0, current = width;
    for (int64_t j = 0; j < width; j++) {
        check(j, rows_len);
        rows[j] = j;
    }
    for (int64_t i = 0; i < a_len; i++) {
        check(current, rows_len);
        rows[current] = i + 1;
        for (int64_t j = 0; j < b_len; j++) {
            check(i, a_len);
            check(j, b_len);
            check(previous + j, rows_len);
            int64_t replaced = rows[previous + j] + (a[i] != b[j]);
            check(previous + j + 1, rows_len);
            int64_t removed = rows[previous + j + 1] + 1;
            check(current + j, rows_len);
            int64_t added = rows[current + j] + 1;
            check(current + j + 1, rows_len);
            rows[current + j + 1] = min(min(replaced, removed), added);
        }
        int64_t old = previous;
        previous = current;
        current = old;
    }
    check(previous + b_len, rows_len);
    return rows[previous + b_len];
}
