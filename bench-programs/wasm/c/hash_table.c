// A hash table with open addressing: insert, count, delete, grow
// test: 1
// bench: 38
// levels: o0 o1 o2 o0-memory64 o2-memory64
#include "program.h"

enum { MOST = 1 << 16, KEYS = 30000 };

enum state { FREE, USED, DELETED };

struct slot {
    uint32_t key;
    uint32_t count;
    uint8_t state;
};

struct table {
    struct slot *slots;
    size_t capacity, used, filled;
};

static struct slot storage[2][MOST];

static void clear(struct table *table, struct slot *slots, size_t capacity) {
    for (size_t i = 0; i < capacity; i++)
        slots[i] = (struct slot){0, 0, FREE};
    *table = (struct table){slots, capacity, 0, 0};
}

// The slot of the key, or else the first that it could take.
static struct slot *find(const struct table *table, uint32_t key) {
    size_t mask = table->capacity - 1;
    size_t at = (key * 0x9e3779b1u >> 7) & mask;
    struct slot *vacant = 0;
    while (table->slots[at].state != FREE) {
        struct slot *slot = &table->slots[at];
        if (slot->state == DELETED) {
            if (vacant == 0)
                vacant = slot;
        } else if (slot->key == key) {
            return slot;
        }
        at = (at + 1) & mask;
    }
    return vacant != 0 ? vacant : &table->slots[at];
}

static void add(struct table *table, uint32_t key, uint32_t count);

static void grow(struct table *table) {
    struct table old = *table;
    struct slot *slots = old.slots == storage[0] ? storage[1] : storage[0];
    clear(table, slots, old.used * 4 < old.capacity ? old.capacity : old.capacity * 2);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].state == USED)
            add(table, old.slots[i].key, old.slots[i].count);
}

static void add(struct table *table, uint32_t key, uint32_t count) {
    if (table->filled * 4 >= table->capacity * 3)
        grow(table);
    struct slot *slot = find(table, key);
    if (slot->state == USED) {
        slot->count += count;
        return;
    }
    table->used++;
    table->filled += slot->state == FREE;
    *slot = (struct slot){key, count, USED};
}

static void delete(struct table *table, uint32_t key) {
    struct slot *slot = find(table, key);
    if (slot->state == USED) {
        slot->state = DELETED;
        table->used--;
    }
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        struct table table;
        uint32_t state = 11u + (uint32_t)round;
        clear(&table, storage[0], 64);
        for (int i = 0; i < 4 * KEYS; i++) {
            uint32_t key = next_random(&state) % KEYS;
            if (i % 5 == 4)
                delete (&table, key);
            else
                add(&table, key, 1);
        }
        uint64_t total = 0;
        for (size_t i = 0; i < table.capacity; i++)
            if (table.slots[i].state == USED)
                total += (uint64_t)table.slots[i].key * table.slots[i].count;
        sum = mix(sum, total);
        sum = mix(sum, table.used);
    }
    return (int64_t)sum;
}
