// What trap_divide.wat has summed, and that it has counted one more
#include "program.h"

int64_t run(int32_t divisor) {
    uint64_t total = 0;
    for (uint32_t by = (uint32_t)divisor; by > 0; by--)
        total += 1000000007u / by;
    return (int64_t)(total * 31 + (uint64_t)divisor + 1);
}
