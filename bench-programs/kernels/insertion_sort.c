#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

void insertion_sort(const int64_t *source, int64_t *sorted, int64_t len, int64_t sorted_len) {
    for (int64_t i = 0; i < len; i++) {
        check(i, len);
        check(i, sorted_len);
        sorted[i] = source[i];
    }
    for (int64_t i = 1; i < len; i++) {
        check(i, sorted_len);
        int64_t x = sorted[i], j = i;
        while (j > 0) {
            check(j - 1, sorted_len);
            int64_t y = sorted[j - 1];
            if (y <= x)
                break;
            check(j, sorted_len);
            sorted[j] = y;
            j--;
        }
        check(j, sorted_len);
        sorted[j] = x;
    }
}
