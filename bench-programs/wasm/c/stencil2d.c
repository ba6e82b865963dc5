// Heat in a plate: a stencil of five points over two grids
// test: 92
// bench: 2500
// long: 37000
// levels: o0 o1 o2 o2-simd
#include "program.h"

enum { WIDTH = 256, HEIGHT = 192 };

static double grid[2][HEIGHT][WIDTH];

static void step(double from[HEIGHT][WIDTH], double to[HEIGHT][WIDTH]) {
    for (int y = 1; y < HEIGHT - 1; y++)
        for (int x = 1; x < WIDTH - 1; x++) {
            double around = from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1];
            to[y][x] = 0.5 * from[y][x] + 0.125 * around;
        }
}

static void begin(void) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int edge = x == 0 || y == 0 || x == WIDTH - 1 || y == HEIGHT - 1;
            grid[0][y][x] = grid[1][y][x] = edge ? (double)((x * 3 + y * 5) % 101) : 0.0;
        }
}

int64_t run(int32_t steps) {
    begin();
    for (int32_t i = 0; i < steps; i++)
        step(grid[i & 1], grid[(i + 1) & 1]);
    uint64_t sum = 0;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            sum = mix(sum, bits(grid[steps & 1][y][x]));
    return (int64_t)sum;
}
