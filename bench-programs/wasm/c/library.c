// The four functions that compilers call without being asked.
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size) {
    unsigned char *a = to;
    const unsigned char *b = from;
    for (size_t i = 0; i < size; i++)
        a[i] = b[i];
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *a = to;
    const unsigned char *b = from;
    if (a < b)
        return memcpy(to, from, size);
    while (size-- > 0)
        a[size] = b[size];
    return to;
}

void *memset(void *to, int value, size_t size) {
    unsigned char *a = to;
    for (size_t i = 0; i < size; i++)
        a[i] = (unsigned char)value;
    return to;
}

int memcmp(const void *left, const void *right, size_t size) {
    const unsigned char *a = left, *b = right;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}
