// Huffman coding: frequencies, the tree by a heap, encoding and decoding bit by bit
// test: 3
// bench: 91
#include "program.h"

enum { SIZE = 64 * 1024, SYMBOLS = 256, NODES = 2 * SYMBOLS };

struct node {
    uint32_t weight;
    int16_t left, right;
};

static uint8_t plain[SIZE], decoded[SIZE], coded[SIZE * 2];
static struct node nodes[NODES];
static int16_t heap[NODES];
static int heap_size, node_count;
static uint32_t codes[SYMBOLS];
static uint8_t lengths[SYMBOLS];

static int is_lighter(int16_t a, int16_t b) {
    return nodes[a].weight != nodes[b].weight ? nodes[a].weight < nodes[b].weight : a < b;
}

static void push(int16_t node) {
    int at = heap_size++;
    while (at > 0 && is_lighter(node, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = node;
}

static int16_t pop(void) {
    int16_t top = heap[0], last = heap[--heap_size];
    int at = 0;
    for (;;) {
        int child = 2 * at + 1;
        if (child >= heap_size)
            break;
        if (child + 1 < heap_size && is_lighter(heap[child + 1], heap[child]))
            child++;
        if (!is_lighter(heap[child], last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

static int16_t build(void) {
    heap_size = 0;
    node_count = SYMBOLS;
    for (int i = 0; i < SYMBOLS; i++)
        nodes[i] = (struct node){0, -1, -1};
    for (size_t i = 0; i < SIZE; i++)
        nodes[plain[i]].weight++;
    for (int16_t i = 0; i < SYMBOLS; i++)
        if (nodes[i].weight != 0)
            push(i);
    while (heap_size > 1) {
        int16_t left = pop(), right = pop();
        nodes[node_count] = (struct node){nodes[left].weight + nodes[right].weight, left, right};
        push((int16_t)node_count++);
    }
    return heap[0];
}

static void assign(int16_t node, uint32_t code, uint8_t length) {
    if (nodes[node].left < 0) {
        codes[node] = code;
        lengths[node] = length;
        return;
    }
    assign(nodes[node].left, code << 1, length + 1);
    assign(nodes[node].right, code << 1 | 1, length + 1);
}

static size_t encode(void) {
    size_t bit = 0;
    for (size_t i = 0; i < sizeof coded; i++)
        coded[i] = 0;
    for (size_t i = 0; i < SIZE; i++) {
        uint32_t code = codes[plain[i]];
        for (int left = lengths[plain[i]] - 1; left >= 0; left--, bit++)
            coded[bit >> 3] |= (uint8_t)((code >> left & 1) << (bit & 7));
    }
    return bit;
}

static void decode(int16_t root) {
    size_t bit = 0;
    for (size_t i = 0; i < SIZE; i++) {
        int16_t node = root;
        while (nodes[node].left >= 0) {
            int one = coded[bit >> 3] >> (bit & 7) & 1;
            node = one ? nodes[node].right : nodes[node].left;
            bit++;
        }
        decoded[i] = (uint8_t)node;
    }
}

int64_t run(int32_t rounds) {
    uint32_t state = 41;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < SIZE; i++)
            plain[i] = (uint8_t)__builtin_ctz(next_random(&state) | 1u << 20) + (uint8_t)(i % 3 * 40);
        int16_t root = build();
        assign(root, 0, 0);
        size_t length = encode();
        decode(root);
        for (size_t i = 0; i < SIZE; i++)
            if (plain[i] != decoded[i])
                return -1;
        sum = mix(sum, length);
        sum = mix(sum, coded[length / 16]);
    }
    return (int64_t)sum;
}
