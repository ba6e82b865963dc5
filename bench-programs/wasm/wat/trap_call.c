// What trap_call.wat has stored
#include "program.h"

int64_t run(int32_t count) {
    static const int DOUBLES[8] = {1, 0, 0, 1, 0, 1, 1, 0};
    uint32_t value = 0;
    for (int32_t i = 0; i < count; i++)
        value = DOUBLES[i % 8] ? value * 2 : value + 3;
    return (int64_t)((uint64_t)value << 32 | (uint32_t)count);
}
