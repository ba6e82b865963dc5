// Shortest paths in a sparse graph, with a priority queue and linked lists of edges
// test: 6
// bench: 180
#include "program.h"

enum { NODES = 8000, EDGES = 40000 };

struct edge {
    int32_t to, weight;
    const struct edge *next;
};

struct entry {
    int32_t distance, node;
};

static struct edge edges[EDGES];
static const struct edge *first[NODES];
static struct entry queue[EDGES + NODES];
static int queued;
static int32_t distances[NODES];

static void push(struct entry entry) {
    int at = queued++;
    while (at > 0 && queue[(at - 1) / 2].distance > entry.distance) {
        queue[at] = queue[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue[at] = entry;
}

static struct entry pop(void) {
    struct entry top = queue[0], last = queue[--queued];
    int at = 0;
    for (int child = 1; child < queued; child = 2 * at + 1) {
        if (child + 1 < queued && queue[child + 1].distance < queue[child].distance)
            child++;
        if (queue[child].distance >= last.distance)
            break;
        queue[at] = queue[child];
        at = child;
    }
    queue[at] = last;
    return top;
}

static void make_graph(uint32_t seed) {
    uint32_t state = seed;
    for (int i = 0; i < NODES; i++)
        first[i] = 0;
    for (int i = 0; i < EDGES; i++) {
        uint32_t from = next_random(&state) % NODES;
        edges[i].to = (int32_t)((from + 1u + next_random(&state) % 200u) % NODES);
        edges[i].weight = 1 + (int32_t)(next_random(&state) % 50u);
        edges[i].next = first[from];
        first[from] = &edges[i];
    }
}

static void search(int32_t source) {
    for (int i = 0; i < NODES; i++)
        distances[i] = INT32_MAX;
    distances[source] = 0;
    queued = 0;
    push((struct entry){0, source});
    while (queued > 0) {
        struct entry entry = pop();
        if (entry.distance > distances[entry.node])
            continue;
        for (const struct edge *edge = first[entry.node]; edge != 0; edge = edge->next) {
            int32_t distance = entry.distance + edge->weight;
            if (distance < distances[edge->to]) {
                distances[edge->to] = distance;
                push((struct entry){distance, edge->to});
            }
        }
    }
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    make_graph(101);
    for (int32_t round = 0; round < rounds; round++) {
        search(round * 37 % NODES);
        for (int i = 0; i < NODES; i += 11)
            sum = mix(sum, (uint64_t)distances[i]);
    }
    return (int64_t)sum;
}
