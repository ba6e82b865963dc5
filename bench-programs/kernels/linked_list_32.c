#include <stdint.h>

struct node {
    uint32_t next;
    uint32_t value;
};

uint32_t linked_list_32(const uint8_t *base, uint32_t first, int64_t rounds) {
    uint32_t total = 0;
    for (; rounds != 0; rounds--) {
        for (uint32_t node = first; node != 0;) {
            const struct node *here = (const struct node *)(base + node);
            total ^= here->value;
            node = here->next;
        }
        total *= 3;
    }
    return total;
}
