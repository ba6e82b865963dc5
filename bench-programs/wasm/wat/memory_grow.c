// The task of memory_grow.wat, in an array of the largest size
#include <string.h>

#include "program.h"

enum { PAGES = 64, WORDS = 65536 / 4 };

int64_t run(int32_t count) {
    static uint32_t memory[PAGES * WORDS];
    size_t pages = 1, top = 0;
    uint64_t sum = 0;
    memset(memory, 0, sizeof memory);
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        if (top + 1 > pages * WORDS && pages == PAGES)
            top--;
        else if (top + 1 > pages * WORDS)
            pages++;
        memory[top++] = i * i;
    }
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        if (i % 1000 == 0 && pages < PAGES)
            pages++;
        memory[pages * WORDS - 1 - i % 1000] = i;
    }
    for (size_t i = 0; i < pages * WORDS; i++)
        sum = sum * 31 + memory[i];
    return (int64_t)(sum + pages);
}
