// A red-black tree in an array of nodes: insertion, search, walk in order
// test: 1
// bench: 32
#include "program.h"

enum { NODES = 20000, NIL = 0 };

struct node {
    uint32_t key;
    uint32_t child[2];
    uint32_t parent;
    uint8_t is_red;
};

static struct node nodes[NODES + 1];
static uint32_t root, count;

static void rotate(uint32_t at, int side) {
    uint32_t up = nodes[at].child[!side], parent = nodes[at].parent;
    nodes[at].child[!side] = nodes[up].child[side];
    if (nodes[up].child[side] != NIL)
        nodes[nodes[up].child[side]].parent = at;
    nodes[up].parent = parent;
    if (parent == NIL)
        root = up;
    else
        nodes[parent].child[nodes[parent].child[1] == at] = up;
    nodes[up].child[side] = at;
    nodes[at].parent = up;
}

static void repair(uint32_t at) {
    while (nodes[nodes[at].parent].is_red) {
        uint32_t parent = nodes[at].parent, grand = nodes[parent].parent;
        int side = nodes[grand].child[1] == parent;
        uint32_t uncle = nodes[grand].child[!side];
        if (nodes[uncle].is_red) {
            nodes[parent].is_red = nodes[uncle].is_red = 0;
            nodes[grand].is_red = 1;
            at = grand;
            continue;
        }
        if (nodes[parent].child[!side] == at) {
            at = parent;
            rotate(at, side);
            parent = nodes[at].parent;
        }
        nodes[parent].is_red = 0;
        nodes[grand].is_red = 1;
        rotate(grand, !side);
    }
    nodes[root].is_red = 0;
}

static int insert(uint32_t key) {
    uint32_t parent = NIL, at = root;
    while (at != NIL) {
        if (nodes[at].key == key)
            return 0;
        parent = at;
        at = nodes[at].child[key > nodes[at].key];
    }
    at = ++count;
    nodes[at] = (struct node){key, {NIL, NIL}, parent, 1};
    if (parent == NIL)
        root = at;
    else
        nodes[parent].child[key > nodes[parent].key] = at;
    repair(at);
    return 1;
}

static int depth(uint32_t key) {
    int steps = 0;
    for (uint32_t at = root; at != NIL; steps++) {
        if (nodes[at].key == key)
            return steps;
        at = nodes[at].child[key > nodes[at].key];
    }
    return -steps;
}

static uint64_t walk(void) {
    uint64_t sum = 0;
    uint32_t at = root;
    while (nodes[at].child[0] != NIL)
        at = nodes[at].child[0];
    while (at != NIL) {
        sum = mix(sum, nodes[at].key);
        if (nodes[at].child[1] != NIL) {
            at = nodes[at].child[1];
            while (nodes[at].child[0] != NIL)
                at = nodes[at].child[0];
            continue;
        }
        uint32_t below = at;
        at = nodes[at].parent;
        while (at != NIL && nodes[at].child[1] == below) {
            below = at;
            at = nodes[at].parent;
        }
    }
    return sum;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    nodes[NIL] = (struct node){0, {NIL, NIL}, NIL, 0};
    for (int32_t round = 0; round < rounds; round++) {
        uint32_t state = 19u + (uint32_t)round;
        int64_t steps = 0;
        root = count = 0;
        while (count < NODES)
            insert(next_random(&state) % (NODES * 8));
        for (uint32_t key = 0; key < NODES * 2; key++)
            steps += depth(key * 4);
        sum = mix(sum, (uint64_t)steps);
        sum = mix(sum, walk());
    }
    return (int64_t)sum;
}
