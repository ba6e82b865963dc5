#include <stdint.h>

struct object {
    int64_t tag, length, elements[];
};

int64_t tagged_arrays(struct object *a, struct object *c, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        int64_t next;
        if (a->tag != 77 || (uint64_t)i >= (uint64_t)a->length)
            return 1;
        int64_t x = a->elements[i];
        if (__builtin_add_overflow(i, (int64_t)1, &next))
            return 1;
        if (a->tag != 77 || (uint64_t)next >= (uint64_t)a->length)
            return 1;
        int64_t y = a->elements[next];
        if (c->tag != 77 || (uint64_t)i >= (uint64_t)c->length)
            return 1;
        c->elements[i] = (int64_t)((uint64_t)x + (uint64_t)y);
    }
    return 0;
}
