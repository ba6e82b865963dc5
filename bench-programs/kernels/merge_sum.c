#include <stdint.h>

int64_t merge_sum(const int64_t *left, int64_t left_len, const int64_t *right, int64_t right_len, int64_t rounds) {
    uint64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = 0, j = 0;
        while (i < left_len && j < right_len) {
            if (left[i] < right[j])
                total = total * 3 + (uint64_t)left[i++];
            else
                total = total * 3 + (uint64_t)right[j++];
        }
    }
    return (int64_t)total;
}
