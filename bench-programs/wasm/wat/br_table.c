// What the program that br_table.wat interprets writes, as often as it is run
#include "program.h"

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++)
        for (const char *letter = "Hello World!\n"; *letter != 0; letter++)
            sum = sum * 31 + (uint8_t)*letter;
    return (int64_t)sum;
}
