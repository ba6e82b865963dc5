// The task of gc_shapes.wat, with a kind in each struct
#include "program.h"

enum { SHAPES = 500 };

struct shape {
    uint32_t kind, size, height;
};

static struct shape make(uint32_t number) {
    struct shape shape = {number % 4, number, number % 4 == 1 ? 3 : 5};
    return shape;
}

static uint32_t weight(struct shape *shape) {
    if (shape->kind == 3)
        return 1;
    if (shape->kind == 0)
        return shape->size;
    shape->height = (shape->height + 1) & 1023;
    return shape->size * shape->height + (shape->kind == 2 ? 6 : 0);
}

int64_t run(int32_t rounds) {
    static struct shape shapes[SHAPES];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SHAPES; i++)
        shapes[i] = make(i);
    for (uint32_t round = 0; round < (uint32_t)rounds; round++) {
        for (int i = 0; i < SHAPES; i++)
            sum += weight(&shapes[i]);
        shapes[round * 7 % SHAPES] = make(round);
    }
    return (int64_t)sum;
}
