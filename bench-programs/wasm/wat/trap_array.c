// What trap_array.wat has summed, and that it has counted one more
#include "program.h"

int64_t run(int32_t count) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < (uint32_t)count; i++)
        sum = sum * 31 + i * 3;
    return (int64_t)(sum + (uint64_t)count + 1);
}
