// Edit distance of two texts, and their longest common subsequence
// test: 2
// bench: 42
#include "program.h"

enum { SIZE = 1000 };

static char left[SIZE + 1], right[SIZE + 1];
static int32_t rows[2][SIZE + 1];
static uint16_t common[SIZE + 1][SIZE + 1];

static int32_t least(int32_t a, int32_t b, int32_t c) {
    int32_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static int32_t distance(void) {
    for (int j = 0; j <= SIZE; j++)
        rows[0][j] = j;
    for (int i = 1; i <= SIZE; i++) {
        const int32_t *above = rows[(i - 1) & 1];
        int32_t *row = rows[i & 1];
        row[0] = i;
        for (int j = 1; j <= SIZE; j++) {
            int32_t change = above[j - 1] + (left[i - 1] != right[j - 1]);
            row[j] = least(above[j] + 1, row[j - 1] + 1, change);
        }
    }
    return rows[SIZE & 1][SIZE];
}

static int longest_common(void) {
    for (int i = 1; i <= SIZE; i++)
        for (int j = 1; j <= SIZE; j++) {
            if (left[i - 1] == right[j - 1])
                common[i][j] = common[i - 1][j - 1] + 1;
            else
                common[i][j] = common[i - 1][j] > common[i][j - 1] ? common[i - 1][j] : common[i][j - 1];
        }
    return common[SIZE][SIZE];
}

int64_t run(int32_t rounds) {
    uint32_t state = 31;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZE; i++) {
            left[i] = (char)('a' + next_random(&state) % 4u);
            right[i] = i % 7 == 0 ? (char)('a' + next_random(&state) % 4u) : left[i];
        }
        sum = mix(sum, (uint64_t)distance());
        sum = mix(sum, (uint64_t)longest_common());
    }
    return (int64_t)sum;
}
