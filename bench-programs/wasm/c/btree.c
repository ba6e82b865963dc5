// A B-tree: insertion with splitting, search, sums over ranges
// test: 1
// bench: 20
#include "program.h"

enum { MOST = 15, NODES = 20000, KEYS = 30000 };

struct node {
    int32_t count;
    int32_t is_leaf;
    uint32_t keys[MOST];
    struct node *children[MOST + 1];
};

static struct node pool[NODES];
static int used;

static struct node *make(int is_leaf) {
    struct node *node = &pool[used++];
    node->count = 0;
    node->is_leaf = is_leaf;
    return node;
}

// The first place of a node whose key is not below.
static int place(const struct node *node, uint32_t key) {
    int i = 0;
    while (i < node->count && node->keys[i] < key)
        i++;
    return i;
}

// Splits a full child in two; its middle key moves up.
static void split(struct node *parent, int at) {
    struct node *left = parent->children[at], *right = make(left->is_leaf);
    int half = MOST / 2;
    right->count = MOST - half - 1;
    for (int i = 0; i < right->count; i++)
        right->keys[i] = left->keys[half + 1 + i];
    for (int i = 0; !left->is_leaf && i <= right->count; i++)
        right->children[i] = left->children[half + 1 + i];
    left->count = half;
    for (int i = parent->count; i > at; i--) {
        parent->keys[i] = parent->keys[i - 1];
        parent->children[i + 1] = parent->children[i];
    }
    parent->keys[at] = left->keys[half];
    parent->children[at + 1] = right;
    parent->count++;
}

static struct node *insert(struct node *root, uint32_t key) {
    if (root->count == MOST) {
        struct node *higher = make(0);
        higher->children[0] = root;
        split(higher, 0);
        root = higher;
    }
    struct node *node = root;
    for (;;) {
        int at = place(node, key);
        if (at < node->count && node->keys[at] == key)
            return root;
        if (node->is_leaf) {
            for (int i = node->count++; i > at; i--)
                node->keys[i] = node->keys[i - 1];
            node->keys[at] = key;
            return root;
        }
        if (node->children[at]->count == MOST) {
            split(node, at);
            if (node->keys[at] == key)
                return root;
            at += key > node->keys[at];
        }
        node = node->children[at];
    }
}

static int contains(const struct node *node, uint32_t key) {
    for (;;) {
        int at = place(node, key);
        if (at < node->count && node->keys[at] == key)
            return 1;
        if (node->is_leaf)
            return 0;
        node = node->children[at];
    }
}

static uint64_t sum_range(const struct node *node, uint32_t from, uint32_t until) {
    uint64_t sum = 0;
    int i = place(node, from);
    for (; i < node->count && node->keys[i] < until; i++) {
        if (!node->is_leaf)
            sum += sum_range(node->children[i], from, until);
        sum += node->keys[i];
    }
    return node->is_leaf ? sum : sum + sum_range(node->children[i], from, until);
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        uint32_t state = 61u + (uint32_t)round, found = 0;
        used = 0;
        struct node *root = make(1);
        for (int i = 0; i < KEYS; i++)
            root = insert(root, next_random(&state) % (KEYS * 4));
        for (uint32_t key = 0; key < KEYS; key++)
            found += (uint32_t)contains(root, key * 4);
        sum = mix(sum, found);
        for (uint32_t from = 0; from < KEYS * 4; from += 5000)
            sum = mix(sum, sum_range(root, from, from + 7000));
    }
    return (int64_t)sum;
}
