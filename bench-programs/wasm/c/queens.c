// Queens on a board: all ways, by arrays and by bits; both must agree
// test: 10
// bench: 12
#include "program.h"

enum { MAX = 16 };

static int columns[MAX];

static int is_free(int row, int column) {
    for (int above = 0; above < row; above++) {
        int offset = columns[above] - column;
        if (offset == 0 || offset == row - above || offset == above - row)
            return 0;
    }
    return 1;
}

// Without recursion: a row holds the column that it tries next.
static int64_t by_arrays(int size) {
    int64_t found = 0;
    int row = 0;
    columns[0] = -1;
    while (row >= 0) {
        do
            columns[row]++;
        while (columns[row] < size && !is_free(row, columns[row]));
        if (columns[row] == size)
            row--;
        else if (row == size - 1)
            found++;
        else
            columns[++row] = -1;
    }
    return found;
}

static int64_t by_bits(uint32_t all, uint32_t taken, uint32_t left, uint32_t right) {
    if (taken == all)
        return 1;
    int64_t found = 0;
    for (uint32_t vacant = all & ~(taken | left | right); vacant != 0; vacant &= vacant - 1) {
        uint32_t queen = vacant & -vacant;
        found += by_bits(all, taken | queen, (left | queen) << 1, (right | queen) >> 1);
    }
    return found;
}

int64_t run(int32_t size) {
    if (size > MAX)
        size = MAX;
    int64_t found = by_arrays(size);
    return by_bits((1u << size) - 1, 0, 0, 0) == found ? found : -1;
}
