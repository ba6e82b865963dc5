// The task of as_tree.ts, with the nodes in an array
#include "program.h"

enum { ADDED = 5000, KEYS = 20000 };

static struct {
    int32_t key, count, child[2];
} nodes[ADDED + 1];

static int32_t size;

static uint64_t walk(int32_t at, uint64_t sum) {
    if (at == 0)
        return sum;
    sum = walk(nodes[at].child[0], sum);
    sum = mix(sum, ((uint64_t)nodes[at].key << 16) + (uint64_t)nodes[at].count);
    return walk(nodes[at].child[1], sum);
}

static void add(int32_t key) {
    int32_t *link = &nodes[0].child[0];
    while (*link != 0 && nodes[*link].key != key)
        link = &nodes[*link].child[key > nodes[*link].key];
    if (*link != 0) {
        nodes[*link].count++;
        return;
    }
    *link = ++size;
    nodes[size].key = key;
    nodes[size].count = 1;
    nodes[size].child[0] = nodes[size].child[1] = 0;
}

static int32_t depth(int32_t key) {
    int32_t steps = 0, at = nodes[0].child[0];
    for (; at != 0 && nodes[at].key != key; steps++)
        at = nodes[at].child[key > nodes[at].key];
    return at == 0 ? -steps : steps;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        uint32_t state = 5u + (uint32_t)round;
        int64_t steps = 0;
        size = nodes[0].child[0] = 0;
        for (int i = 0; i < ADDED; i++)
            add((int32_t)(next_random(&state) % KEYS));
        for (int32_t key = 0; key < KEYS; key += 3)
            steps += depth(key);
        sum = walk(nodes[0].child[0], mix(sum, (uint64_t)steps));
        sum = mix(sum, (uint64_t)size);
    }
    return (int64_t)sum;
}
