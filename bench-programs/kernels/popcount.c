#include <stdint.h>

int64_t popcount(const uint64_t *words, int64_t len) {
    int64_t count = 0, i = 0;
    do {
        uint64_t word = words[i];
        do {
            word &= word - 1;
            count++;
        } while (word != 0);
        i++;
    } while (i < len);
    return count;
}
