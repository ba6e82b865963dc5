#include <stdint.h>

int64_t switch_loop(const uint8_t *code, uint64_t len, int64_t counter) {
    uint64_t pc = 0, total = 0;
    while (pc < len) {
        switch (code[pc++]) {
        case 0:
            return (int64_t)total;
        case 1:
            total += 1;
            break;
        case 2:
            total += total;
            break;
        case 3:
            total ^= pc;
            break;
        case 4:
            if (--counter != 0)
                pc = 0;
            break;
        }
    }
    return (int64_t)total;
}
