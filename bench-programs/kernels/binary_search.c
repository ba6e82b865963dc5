#include <stdint.h>

static inline void check(int64_t index, int64_t len) {
    if ((uint64_t)index >= (uint64_t)len)
        __builtin_trap();
}

int64_t binary_search(const int64_t *sorted, int64_t len, const int64_t *keys, int64_t searches) {
    int64_t total = 0;
    for (int64_t search = 0; search < searches; search++) {
        check(search, searches);
        int64_t key = keys[search], low = 0, high = len;
        while (low < high) {
            int64_t middle = (int64_t)((uint64_t)(low + high) >> 1);
            check(middle, len);
            if (sorted[middle] < key)
                low = middle + 1;
            else
                high = middle;
        }
        total += low;
    }
    return total;
}
