// The task of as_shapes.ts, with a kind in the place of virtual methods
#include "program.h"

enum { SHAPES = 2000 };

struct shape {
    double size;
    uint32_t kind;
};

static struct shape make(uint32_t *state) {
    struct shape shape;
    shape.size = (double)(next_random(state) % 100u) * 0.25;
    shape.kind = next_random(state) % 3u;
    return shape;
}

static double area(struct shape shape) {
    double hole = shape.size * 0.5;
    switch (shape.kind) {
    case 0:
        return shape.size * shape.size;
    case 1:
        return shape.size * shape.size * 0.5;
    default:
        return 3.140625 * (shape.size * shape.size - hole * hole);
    }
}

int64_t run(int32_t rounds) {
    static struct shape shapes[SHAPES];
    static const int32_t CORNERS[3] = {4, 3, 0};
    uint32_t state = 333;
    uint64_t sum = 0;
    for (int i = 0; i < SHAPES; i++)
        shapes[i] = make(&state);
    for (int32_t round = 0; round < rounds; round++) {
        double total = 0.0;
        int32_t corners = 0;
        for (int i = 0; i < SHAPES; i++) {
            total += area(shapes[i]);
            corners += CORNERS[shapes[i].kind];
        }
        sum = mix(sum, bits(total));
        sum = mix(sum, (uint64_t)corners);
        for (int i = 0; i < 20; i++) {
            uint32_t at = next_random(&state) % SHAPES;
            shapes[at] = make(&state);
        }
    }
    return (int64_t)sum;
}
