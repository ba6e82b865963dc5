// Heapsort of records through an array of pointers
// test: 1
// bench: 32
#include "program.h"

enum { SIZE = 30000 };

struct record {
    uint32_t key;
    uint16_t group;
    uint16_t count;
    double weight;
};

static struct record records[SIZE];
static const struct record *order[SIZE];

static int comes_first(const struct record *a, const struct record *b) {
    if (a->group != b->group)
        return a->group < b->group;
    if (a->weight != b->weight)
        return a->weight < b->weight;
    return a->key < b->key;
}

static void sift(size_t root, size_t size) {
    const struct record *moved = order[root];
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= size)
            break;
        if (child + 1 < size && comes_first(order[child], order[child + 1]))
            child++;
        if (!comes_first(moved, order[child]))
            break;
        order[root] = order[child];
        root = child;
    }
    order[root] = moved;
}

static void sort(void) {
    for (size_t i = SIZE / 2; i-- > 0;)
        sift(i, SIZE);
    for (size_t size = SIZE - 1; size > 0; size--) {
        const struct record *largest = order[0];
        order[0] = order[size];
        order[size] = largest;
        sift(0, size);
    }
}

int64_t run(int32_t rounds) {
    uint32_t state = 77;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < SIZE; i++) {
            uint32_t random = next_random(&state);
            records[i] = (struct record){random, (uint16_t)(random >> 8 & 63), (uint16_t)i, (double)(random % 1000u) * 0.5};
            order[i] = &records[i];
        }
        sort();
        for (size_t i = 1; i < SIZE; i++)
            if (comes_first(order[i], order[i - 1]))
                return -1;
        for (size_t i = 0; i < SIZE; i += 37)
            sum = mix(sum, order[i]->key + order[i]->count);
    }
    return (int64_t)sum;
}
