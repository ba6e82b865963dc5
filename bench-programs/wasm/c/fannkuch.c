// Pancake flips over all permutations of so many numbers
// test: 8
// bench: 10
// long: 11
#include "program.h"

enum { MAX = 12 };

static int flips(const int *permutation, int n) {
    int work[MAX];
    for (int i = 0; i < n; i++)
        work[i] = permutation[i];
    int count = 0;
    while (work[0] != 0) {
        int first = work[0];
        for (int low = 0, high = first; low < high; low++, high--) {
            int kept = work[low];
            work[low] = work[high];
            work[high] = kept;
        }
        count++;
    }
    return count;
}

// Rotates the front until a new permutation is made; no if all have been made.
static int next_permutation(int *permutation, int *counts, int n) {
    for (int size = 2; size <= n; size++) {
        int first = permutation[0];
        for (int i = 0; i + 1 < size; i++)
            permutation[i] = permutation[i + 1];
        permutation[size - 1] = first;
        if (++counts[size - 1] < size)
            return 1;
        counts[size - 1] = 0;
    }
    return 0;
}

int64_t run(int32_t n) {
    if (n > MAX)
        n = MAX;
    int permutation[MAX], counts[MAX];
    for (int i = 0; i < n; i++) {
        permutation[i] = i;
        counts[i] = 0;
    }
    int most = 0, even = 1;
    int64_t checksum = 0;
    do {
        int count = flips(permutation, n);
        if (count > most)
            most = count;
        checksum += even ? count : -count;
        even = !even;
    } while (next_permutation(permutation, counts, n));
    return checksum * 1000 + most;
}
