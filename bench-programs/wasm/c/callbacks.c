// Functions as arguments: map, filter and fold over arrays, a merge sort with a comparison, lists of handlers
// test: 12
// bench: 250
#include "program.h"

enum { SIZE = 4000, HANDLERS = 8 };

typedef int64_t (*unary)(int64_t);
typedef int64_t (*binary)(int64_t, int64_t);
typedef int (*predicate)(int64_t);

static int64_t numbers[SIZE], others[SIZE];

static int64_t twice(int64_t x) {
    return x * 2;
}

static int64_t less_by_seven(int64_t x) {
    return x - 7;
}

static int64_t half(int64_t x) {
    return x >> 1;
}

static int64_t mirror(int64_t x) {
    return -x;
}

static int is_even(int64_t x) {
    return (x & 1) == 0;
}

static int is_positive(int64_t x) {
    return x > 0;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t folded(int64_t a, int64_t b) {
    return (int64_t)mix((uint64_t)a, (uint64_t)b);
}

static int64_t ascending(int64_t a, int64_t b) {
    return a < b ? -1 : a > b;
}

static int64_t by_last_digit(int64_t a, int64_t b) {
    int64_t digits = (a % 10 + 10) % 10 - (b % 10 + 10) % 10;
    return digits != 0 ? digits : ascending(a, b);
}

static void map(int64_t *values, int count, unary function) {
    for (int i = 0; i < count; i++)
        values[i] = function(values[i]);
}

static int filter(int64_t *values, int count, predicate keep) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (keep(values[i]))
            values[kept++] = values[i];
    return kept;
}

static int64_t fold(const int64_t *values, int count, int64_t start, binary function) {
    for (int i = 0; i < count; i++)
        start = function(start, values[i]);
    return start;
}

static void merge_sort(int64_t *values, int64_t *scratch, int count, binary compare) {
    for (int width = 1; width < count; width *= 2) {
        for (int begin = 0; begin < count; begin += 2 * width) {
            int middle = begin + width < count ? begin + width : count;
            int end = begin + 2 * width < count ? begin + 2 * width : count;
            int left = begin, right = middle;
            for (int i = begin; i < end; i++) {
                int take_left = left < middle && (right == end || compare(values[left], values[right]) <= 0);
                scratch[i] = take_left ? values[left++] : values[right++];
            }
        }
        for (int i = 0; i < count; i++)
            values[i] = scratch[i];
    }
}

int64_t run(int32_t rounds) {
    static const unary STEPS[HANDLERS] = {twice, less_by_seven, half, mirror, twice, half, less_by_seven, mirror};
    static const predicate TESTS[2] = {is_even, is_positive};
    static const binary ORDERS[2] = {ascending, by_last_digit};
    uint32_t state = 12;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZE; i++)
            numbers[i] = (int64_t)(next_random(&state) % 100000u) - 50000;
        for (int i = 0; i < HANDLERS; i++)
            map(numbers, SIZE, STEPS[(i + round) % HANDLERS]);
        int count = filter(numbers, SIZE, TESTS[round % 2]);
        merge_sort(numbers, others, count, ORDERS[round / 2 % 2]);
        sum = mix(sum, (uint64_t)fold(numbers, count, 0, larger));
        sum = mix(sum, (uint64_t)fold(numbers, count, (int64_t)(sum & 255), folded));
    }
    return (int64_t)sum;
}
