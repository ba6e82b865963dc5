// The task of tables.wat
#include "program.h"

static uint64_t step(int kind, uint64_t value) {
    switch (kind) {
    case 0:
        return value + 12345;
    case 1:
        return value ^ (value << 17 | value >> 47);
    case 2:
        return value + (value >> 9);
    default:
        return value * (value | 1);
    }
}

int64_t run(int32_t rounds) {
    int kinds[16] = {0, 1, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint64_t value = 1;
    for (uint32_t i = 0; i < (uint32_t)rounds; i++) {
        value = step(kinds[i % 16], value);
        if (i % 64 == 0) {
            uint32_t at = i / 64 % 8;
            int kept = kinds[at];
            kinds[at] = kinds[at + 1];
            kinds[at + 1] = kept;
        }
    }
    return (int64_t)value;
}
