#include <stdint.h>

int64_t pointer_walk(const char *data, int64_t size, int64_t walked, int64_t rounds) {
    const char *limit = data + size, *end = data + walked;
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (const char *p = data; p != end; p += 8) {
            if (p >= limit)
                __builtin_trap();
            total += *(const int64_t *)p;
        }
    }
    return total;
}
