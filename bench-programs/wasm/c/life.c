// Game of life on a torus, one byte for each cell
// test: 13
// bench: 540
// long: 5100
#include "program.h"

enum { WIDTH = 200, HEIGHT = 150 };

static uint8_t board[2][HEIGHT][WIDTH];

static int neighbours(uint8_t cells[HEIGHT][WIDTH], int x, int y) {
    int count = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx != 0 || dy != 0)
                count += cells[(y + dy + HEIGHT) % HEIGHT][(x + dx + WIDTH) % WIDTH];
    return count;
}

static void step(uint8_t from[HEIGHT][WIDTH], uint8_t to[HEIGHT][WIDTH]) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int count = neighbours(from, x, y);
            to[y][x] = count == 3 || (count == 2 && from[y][x] != 0);
        }
}

int64_t run(int32_t steps) {
    uint32_t state = 4711;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            board[0][y][x] = next_random(&state) % 3u == 0;
    for (int32_t i = 0; i < steps; i++)
        step(board[i & 1], board[(i + 1) & 1]);
    uint64_t sum = 0, alive = 0;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            alive += board[steps & 1][y][x];
            sum = mix(sum, board[steps & 1][y][x]);
        }
    return (int64_t)mix(sum, alive);
}
