// Sudoku by search, always in the cell with the fewest candidates
// test: 10
// bench: 290
#include "program.h"

static const char PUZZLES[4][82] = {
    "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..",
    "1....7.9..3..2...8..96..5....53..9...1..8...26....4...3......1..4......7..7...3..",
    "..............3.85..1.2.......5.7.....4...1...9.......5......73..2.1........4...9",
    "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79",
};

enum { MOST_STEPS = 6000 };

static uint8_t cells[81];
static uint16_t rows[9], columns[9], boxes[9];
static int steps;

static int box(int cell) {
    return cell / 27 * 3 + cell % 9 / 3;
}

static void toggle(int cell, uint16_t bit) {
    rows[cell / 9] ^= bit;
    columns[cell % 9] ^= bit;
    boxes[box(cell)] ^= bit;
}

static int read(const char *puzzle, int shift) {
    int count = 0;
    for (int i = 0; i < 9; i++)
        rows[i] = columns[i] = boxes[i] = 0;
    for (int cell = 0; cell < 81; cell++) {
        cells[cell] = 0;
        if (puzzle[cell] == '.')
            continue;
        cells[cell] = (uint8_t)((puzzle[cell] - '1' + shift) % 9 + 1);
        toggle(cell, (uint16_t)(1 << cells[cell]));
        count++;
    }
    return count;
}

static unsigned candidates(int cell) {
    return ~(unsigned)(rows[cell / 9] | columns[cell % 9] | boxes[box(cell)]) & 0x3fe;
}

static int tightest(void) {
    int best = -1, least = 10;
    for (int cell = 0; cell < 81; cell++) {
        if (cells[cell] != 0)
            continue;
        int count = __builtin_popcount(candidates(cell));
        if (count < least) {
            least = count;
            best = cell;
        }
    }
    return best;
}

static int solve(void) {
    int cell = tightest();
    if (cell < 0)
        return 1;
    if (++steps > MOST_STEPS)
        return 0;
    for (unsigned left = candidates(cell); left != 0; left &= left - 1) {
        int digit = __builtin_ctz(left);
        cells[cell] = (uint8_t)digit;
        toggle(cell, (uint16_t)(1 << digit));
        if (solve())
            return 1;
        toggle(cell, (uint16_t)(1 << digit));
        cells[cell] = 0;
    }
    return 0;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        steps = 0;
        read(PUZZLES[round % 4], round / 4 % 9);
        sum = mix(sum, (uint64_t)solve());
        for (int cell = 0; cell < 81; cell++)
            sum = mix(sum, cells[cell]);
        sum = mix(sum, (uint64_t)steps);
    }
    return (int64_t)sum;
}
