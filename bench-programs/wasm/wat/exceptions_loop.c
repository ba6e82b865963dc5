// The task of exceptions_loop.wat, with results in the place of exceptions
#include "program.h"

enum { SIZE = 4096 };

static uint8_t text[SIZE];

static void write_text(void) {
    for (int i = 0; i < SIZE; i++)
        text[i] = (uint8_t)(i % 7 == 6 ? ' ' : i % 61 == 0 ? 'x' : '0' + i * 37 % 10);
    text[SIZE - 1] = ' ';
}

static int skip(int at) {
    while (text[at] != ' ')
        at++;
    return at + 1;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    write_text();
    for (int32_t round = 0; round < rounds; round++)
        for (int at = 0; at < SIZE;) {
            uint32_t value = 0;
            int i = at;
            while (text[i] != ' ' && text[i] != 'x' && value <= 949999)
                value = value * 10 + (text[i++] - '0');
            if (value > 949999) {
                sum += value / 2;
                at = skip(at);
            } else if (text[i] == 'x') {
                sum = sum * 3 + 'x';
                at = skip(i);
            } else {
                sum += value;
                at = i + 1;
            }
        }
    return (int64_t)sum;
}
