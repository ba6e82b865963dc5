// The task of tail_calls.wat, with loops
#include "program.h"

int64_t run(int32_t rounds) {
    uint8_t text[300];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 300; i++)
        text[i] = (uint8_t)(40 + i * 29 % 83);
    for (uint32_t i = 0; i < (uint32_t)rounds; i++) {
        sum += i % 2 == 0;
        for (uint64_t n = i; n > 1; n = n % 2 == 0 ? n / 2 : 3 * n + 1)
            sum++;
        for (uint32_t at = 0; at < i % 300; at++) {
            uint8_t letter = text[at];
            if (letter >= 'a' && letter <= 'z')
                sum = sum * 31 + letter;
            else if (letter >= '0' && letter <= '9')
                sum = sum * 10 + letter;
            else
                sum++;
        }
    }
    return (int64_t)sum;
}
