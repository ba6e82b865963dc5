// The task of bulk_memory.wat
#include <string.h>

#include "program.h"

enum { TEXT = 4096, SIZE = 65536 };

static uint8_t memory[SIZE];

static void edit(size_t at, size_t length) {
    memmove(memory + at + length, memory + at, TEXT - at);
    memset(memory + at, 65 + (int)length, length);
    memmove(memory + at / 2, memory + at / 2 + length, TEXT);
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    memset(memory, '.', SIZE);
    for (uint32_t round = 0; round < (uint32_t)rounds; round++) {
        for (size_t i = 0; round % 16 == 0 && i < 64; i++)
            memcpy(memory + i * 26, "abcdefghijklmnopqrstuvwxyz", 26);
        edit(round * 101 % 4000, round % 23);
        for (size_t at = 0; at < TEXT; at += 8) {
            uint64_t word = 0;
            for (size_t i = 0; i < 8; i++)
                word |= (uint64_t)memory[at + i] << 8 * i;
            sum = sum * 31 + word;
        }
    }
    return (int64_t)sum;
}
