// What trap_convert.wat has summed, and how many
#include "program.h"

int64_t run(int32_t count) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum = sum * 31 + (uint64_t)(2147483648 - count + i);
    return (int64_t)(sum + (uint64_t)count);
}
