// Slices whose every access is checked, as in a safe language: sums, sorting, search, a histogram
// test: 8
// bench: 230
// levels: o0 o1 o2 o0-memory64
#include "program.h"

enum { SIZE = 2000, BINS = 64 };

struct slice {
    int32_t *cells;
    size_t length;
};

static int32_t storage[SIZE], copies[SIZE], bins[BINS];

static inline int32_t get(struct slice slice, size_t index) {
    if (index >= slice.length)
        __builtin_trap();
    return slice.cells[index];
}

static inline void set(struct slice slice, size_t index, int32_t value) {
    if (index >= slice.length)
        __builtin_trap();
    slice.cells[index] = value;
}

static struct slice part(struct slice slice, size_t begin, size_t end) {
    if (begin > end || end > slice.length)
        __builtin_trap();
    return (struct slice){slice.cells + begin, end - begin};
}

static int64_t dot(struct slice a, struct slice b) {
    int64_t sum = 0;
    for (size_t i = 0; i < a.length; i++)
        sum += (int64_t)get(a, i) * get(b, i);
    return sum;
}

static void prefix_sums(struct slice values) {
    for (size_t i = 1; i < values.length; i++)
        set(values, i, (int32_t)((uint32_t)get(values, i) + (uint32_t)get(values, i - 1)));
}

static void shell_sort(struct slice values) {
    for (size_t gap = values.length / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < values.length; i++) {
            int32_t value = get(values, i);
            size_t j = i;
            for (; j >= gap && get(values, j - gap) > value; j -= gap)
                set(values, j, get(values, j - gap));
            set(values, j, value);
        }
}

static size_t lower_bound(struct slice values, int32_t value) {
    size_t low = 0, high = values.length;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (get(values, middle) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void count(struct slice values, struct slice into) {
    for (size_t i = 0; i < into.length; i++)
        set(into, i, 0);
    for (size_t i = 0; i < values.length; i++) {
        size_t bin = (size_t)get(values, i) % into.length;
        set(into, bin, get(into, bin) + 1);
    }
}

int64_t run(int32_t rounds) {
    struct slice values = {storage, SIZE}, copy = {copies, SIZE}, histogram = {bins, BINS};
    uint32_t state = 9;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < SIZE; i++) {
            set(values, i, (int32_t)(next_random(&state) >> 8));
            set(copy, i, get(values, i));
        }
        shell_sort(part(values, (size_t)round % 100, SIZE));
        sum = mix(sum, (uint64_t)dot(values, copy));
        for (size_t i = 0; i < SIZE; i += 3)
            sum = mix(sum, lower_bound(part(values, 100, SIZE), get(copy, i)));
        count(copy, histogram);
        prefix_sums(copy);
        prefix_sums(histogram);
        sum = mix(sum, (uint64_t)dot(histogram, part(copy, SIZE - BINS, SIZE)));
    }
    return (int64_t)sum;
}
