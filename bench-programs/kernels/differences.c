#include <stdint.h>

void differences(const int32_t *a, const int32_t *b, int32_t *c, int64_t count, int64_t rounds) {
    const int32_t *end = a + count;
    for (; rounds != 0; rounds--) {
        const int32_t *x = a, *y = b;
        int32_t *z = c;
        while (x != end)
            *z++ = (int32_t)((uint32_t)*x++ - (uint32_t)*y++);
    }
}
