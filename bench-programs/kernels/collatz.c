#include <stdint.h>

int64_t collatz(int64_t limit) {
    int64_t longest = 0;
    for (int64_t start = 1; start < limit; start++) {
        uint64_t n = (uint64_t)start;
        int64_t steps = 0;
        while (n != 1) {
            n = n & 1 ? 3 * n + 1 : n >> 1;
            steps++;
        }
        longest = steps > longest ? steps : longest;
    }
    return longest;
}
