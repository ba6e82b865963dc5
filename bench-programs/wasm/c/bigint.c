// Large integers: factorials, Fibonacci numbers and powers, by schoolbook multiplication
// test: 12
// bench: 330
#include "program.h"

enum { LIMBS = 400 };

struct number {
    uint32_t limb[LIMBS];
    int size;
};

static void set(struct number *to, uint32_t value) {
    to->limb[0] = value;
    to->size = value != 0;
}

static void scale(struct number *a, uint32_t by) {
    uint64_t carry = 0;
    for (int i = 0; i < a->size; i++) {
        carry += (uint64_t)a->limb[i] * by;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0 && a->size < LIMBS)
        a->limb[a->size++] = (uint32_t)carry;
}

static void add(struct number *to, const struct number *a, const struct number *b) {
    uint64_t carry = 0;
    int size = a->size > b->size ? a->size : b->size;
    for (int i = 0; i < size; i++) {
        carry += i < a->size ? a->limb[i] : 0;
        carry += i < b->size ? b->limb[i] : 0;
        to->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    to->size = size;
    if (carry != 0 && size < LIMBS)
        to->limb[to->size++] = (uint32_t)carry;
}

static void multiply(struct number *to, const struct number *a, const struct number *b) {
    int size = a->size + b->size < LIMBS ? a->size + b->size : LIMBS;
    for (int i = 0; i < size; i++)
        to->limb[i] = 0;
    for (int i = 0; i < a->size; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < b->size && i + j < LIMBS; j++) {
            carry += (uint64_t)a->limb[i] * b->limb[j] + to->limb[i + j];
            to->limb[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        if (i + b->size < LIMBS)
            to->limb[i + b->size] = (uint32_t)carry;
    }
    while (size > 0 && to->limb[size - 1] == 0)
        size--;
    to->size = size;
}

static uint32_t divide(struct number *a, uint32_t by) {
    uint64_t rest = 0;
    for (int i = a->size - 1; i >= 0; i--) {
        rest = rest << 32 | a->limb[i];
        a->limb[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    while (a->size > 0 && a->limb[a->size - 1] == 0)
        a->size--;
    return (uint32_t)rest;
}

// Sum of the digits, in groups of nine.
static uint64_t digits(struct number *a) {
    uint64_t sum = 0;
    while (a->size > 0)
        sum = mix(sum, divide(a, 1000000000u));
    return sum;
}

static struct number work[4];

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        struct number *a = &work[0], *b = &work[1], *c = &work[2];
        set(a, 1);
        for (uint32_t i = 2; i <= 1000; i++)
            scale(a, i);
        sum = mix(sum, digits(a));
        set(a, 0);
        set(b, 1);
        for (int i = 0; i < 3000; i += 3) {
            add(c, a, b);
            add(a, b, c);
            add(b, c, a);
        }
        sum = mix(sum, digits(b));
        set(a, 3u + (uint32_t)round % 7u);
        for (int i = 0; i < 11; i++) {
            multiply(b, a, a);
            struct number *kept = a;
            a = b;
            b = kept;
        }
        sum = mix(sum, (uint64_t)a->size);
        sum = mix(sum, digits(a));
    }
    return (int64_t)sum;
}
