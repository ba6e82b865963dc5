// Quicksort with insertion sort for short parts
// test: 2
// bench: 44
#include "program.h"

enum { SIZE = 50000, SHORT = 12 };

static int32_t values[SIZE];

static void insertion_sort(int32_t *from, int count) {
    for (int i = 1; i < count; i++) {
        int32_t value = from[i];
        int j = i;
        while (j > 0 && from[j - 1] > value) {
            from[j] = from[j - 1];
            j--;
        }
        from[j] = value;
    }
}

static int32_t middle(int32_t a, int32_t b, int32_t c) {
    if (a < b)
        return b < c ? b : a < c ? c : a;
    return a < c ? a : b < c ? c : b;
}

static void sort(int32_t *from, int count) {
    while (count > SHORT) {
        int32_t pivot = middle(from[0], from[count / 2], from[count - 1]);
        int low = 0, high = count - 1;
        while (low <= high) {
            while (from[low] < pivot)
                low++;
            while (from[high] > pivot)
                high--;
            if (low <= high) {
                int32_t kept = from[low];
                from[low++] = from[high];
                from[high--] = kept;
            }
        }
        sort(from, high + 1);
        from += low;
        count -= low;
    }
    insertion_sort(from, count);
}

int64_t run(int32_t rounds) {
    uint32_t state = 2024;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZE; i++)
            values[i] = (int32_t)(next_random(&state) >> 4) - (1 << 27);
        sort(values, SIZE);
        for (int i = 1; i < SIZE; i++)
            if (values[i - 1] > values[i])
                return -1;
        for (int i = 0; i < SIZE; i += 101)
            sum = mix(sum, (uint64_t)values[i]);
    }
    return (int64_t)sum;
}
