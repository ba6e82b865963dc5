#include <stdint.h>

struct object {
    int64_t tag, length, elements;
};

int64_t object_arrays(char *base, struct object *a, struct object *c, int64_t x) {
    for (int64_t i = 0; i < c->length; i++) {
        if (a->tag != 77 || (uint64_t)i >= (uint64_t)a->length)
            return 1;
        int64_t y = ((int64_t *)(base + a->elements))[i];
        if (c->tag != 77 || (uint64_t)i >= (uint64_t)c->length)
            return 1;
        ((int64_t *)(base + c->elements))[i] = (int64_t)((uint64_t)y + (uint64_t)x);
    }
    return 0;
}
