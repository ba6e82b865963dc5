#include <stdint.h>

int64_t dead_loop(int64_t outer, int64_t inner) {
    int64_t total = 0;
    for (int64_t i = 0; i < outer; i++) {
        uint64_t unused = (uint64_t)i;
        for (int64_t j = 0; j < inner; j++)
            unused = unused * 3 + (uint64_t)j;
        total = (total ^ i) + 1;
    }
    return total;
}
