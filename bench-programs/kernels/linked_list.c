#include <stdint.h>

struct node {
    int64_t next;
    uint64_t value;
};

int64_t linked_list(const uint8_t *base, int64_t node) {
    uint64_t total = 0;
    while (node != 0) {
        const struct node *here = (const struct node *)(base + node);
        total = total * 3 + here->value;
        node = here->next;
    }
    return (int64_t)total;
}
