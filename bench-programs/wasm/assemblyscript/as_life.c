// The task of as_life.ts
#include <string.h>

#include "program.h"

enum { WIDTH = 96, HEIGHT = 64, CELLS = WIDTH * HEIGHT };

static uint8_t boards[2][CELLS];
static int32_t distances[CELLS], queue[CELLS];

static void step(const uint8_t *from, uint8_t *to) {
    for (int y = 1; y < HEIGHT - 1; y++)
        for (int x = 1; x < WIDTH - 1; x++) {
            const uint8_t *at = from + y * WIDTH + x;
            int count = at[-WIDTH - 1] + at[-WIDTH] + at[-WIDTH + 1] + at[-1] + at[1] + at[WIDTH - 1] + at[WIDTH] + at[WIDTH + 1];
            to[y * WIDTH + x] = count == 3 || (count == 2 && *at == 1);
        }
}

static void visit(const uint8_t *board, int cell, int32_t distance, int *count) {
    if (cell < 0 || cell >= CELLS || board[cell] != 0 || distances[cell] >= 0)
        return;
    distances[cell] = distance;
    queue[(*count)++] = cell;
}

static void flood(const uint8_t *board) {
    int count = 1;
    memset(distances, -1, sizeof distances);
    distances[0] = 0;
    queue[0] = 0;
    for (int head = 0; head < count; head++) {
        int at = queue[head], distance = distances[at] + 1;
        if (at % WIDTH > 0)
            visit(board, at - 1, distance, &count);
        if (at % WIDTH < WIDTH - 1)
            visit(board, at + 1, distance, &count);
        visit(board, at - WIDTH, distance, &count);
        visit(board, at + WIDTH, distance, &count);
    }
}

int64_t run(int32_t rounds) {
    uint32_t state = 12;
    uint64_t sum = 0;
    uint8_t *board = boards[0], *other = boards[1];
    memset(boards, 0, sizeof boards);
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 1; i < CELLS; i++)
            board[i] = next_random(&state) % 3u == 0;
        memset(other, 0, CELLS);
        for (int i = 0; i < 9; i++) {
            step(board, other);
            uint8_t *kept = board;
            board = other;
            other = kept;
        }
        board[0] = 0;
        flood(board);
        for (int i = 0; i < CELLS; i += 5)
            sum = mix(sum, (uint64_t)distances[i]);
    }
    return (int64_t)sum;
}
