// An interpreter of a stack machine, running a program that counts primes and one that sums a series
// test: 5
// bench: 140
// long: 2000
#include "program.h"

enum operation { PUSH, LOAD, STORE, ADD, SUB, MUL, REM, LESS, EQUAL, JUMP, JUMP_IF, INDEX, SET, DUP, HALT };

enum { STACK = 64, LOCALS = 8, CELLS = 4096 };

struct machine {
    const int32_t *code;
    int32_t at, height;
    int32_t stack[STACK];
    int32_t locals[LOCALS];
    int32_t cells[CELLS];
    uint64_t steps;
};

static struct machine machine;

// Local 0: i, 1: j, 2: the limit, 3: how many primes. A cell is 1 if its number is composite.
static const int32_t SIEVE[] = {
    PUSH, 2, STORE, 0,                                         //  0: i = 2
    LOAD, 0, LOAD, 2, LESS, JUMP_IF, 13, HALT, 0,              //  4: while i < limit
    LOAD, 0, INDEX, JUMP_IF, 50,                               // 13:   if composite go on at 50
    LOAD, 3, PUSH, 1, ADD, STORE, 3,                           // 18:   primes++
    LOAD, 0, DUP, MUL, STORE, 1,                               // 25:   j = i * i
    LOAD, 1, LOAD, 2, LESS, PUSH, 0, EQUAL, JUMP_IF, 50,       // 31:   while j < limit
    PUSH, 1, LOAD, 1, SET,                                     // 41:     composite[j] = 1
    JUMP, 57, HALT, HALT,                                      // 46
    LOAD, 0, PUSH, 1, ADD, JUMP, 66,                           // 50:   i + 1
    LOAD, 1, LOAD, 0, ADD, STORE, 1, JUMP, 31,                 // 57:     j += i
    STORE, 0, JUMP, 4,                                         // 66
};

// Local 0: i, 1: sum, 2: the limit.
static const int32_t SERIES[] = {
    PUSH, 0, STORE, 1, PUSH, 0, STORE, 0,                      //  0
    LOAD, 0, LOAD, 2, EQUAL, JUMP_IF, 38,                      //  8: while i != limit
    LOAD, 1, LOAD, 0, DUP, MUL, PUSH, 7, REM, ADD, STORE, 1,   // 15:   sum += i * i % 7
    LOAD, 0, PUSH, 1, ADD, STORE, 0, JUMP, 8, HALT, HALT,      // 27:   i++
    HALT,                                                      // 38
};

static void push(struct machine *m, int32_t value) {
    m->stack[m->height++] = value;
}

static int32_t pop(struct machine *m) {
    return m->stack[--m->height];
}

// Numbers wrap around.
static int32_t compute(enum operation operation, int32_t a, int32_t b) {
    switch (operation) {
    case ADD:
        return (int32_t)((uint32_t)a + (uint32_t)b);
    case SUB:
        return (int32_t)((uint32_t)a - (uint32_t)b);
    case MUL:
        return (int32_t)((uint32_t)a * (uint32_t)b);
    case REM:
        return b > 0 ? a % b : 0;
    case LESS:
        return a < b;
    default:
        return a == b;
    }
}

static void interpret(struct machine *m) {
    for (;;) {
        enum operation operation = (enum operation)m->code[m->at++];
        int32_t a, b;
        m->steps++;
        switch (operation) {
        case PUSH:
            push(m, m->code[m->at++]);
            break;
        case LOAD:
            push(m, m->locals[m->code[m->at++]]);
            break;
        case STORE:
            m->locals[m->code[m->at++]] = pop(m);
            break;
        case JUMP:
            m->at = m->code[m->at];
            break;
        case JUMP_IF:
            m->at = pop(m) != 0 ? m->code[m->at] : m->at + 1;
            break;
        case INDEX:
            push(m, m->cells[(uint32_t)pop(m) % CELLS]);
            break;
        case SET:
            a = pop(m);
            m->cells[(uint32_t)a % CELLS] = pop(m);
            break;
        case DUP:
            a = pop(m);
            push(m, a);
            push(m, a);
            break;
        case HALT:
            return;
        default:
            b = pop(m);
            a = pop(m);
            push(m, compute(operation, a, b));
        }
    }
}

static void begin(struct machine *m, const int32_t *code, int32_t limit) {
    for (int i = 0; i < CELLS; i++)
        m->cells[i] = 0;
    for (int i = 0; i < LOCALS; i++)
        m->locals[i] = 0;
    m->locals[2] = limit;
    m->code = code;
    m->at = m->height = 0;
    m->steps = 0;
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        begin(&machine, SIEVE, CELLS - round % 100);
        interpret(&machine);
        sum = mix(sum, machine.steps ^ (uint64_t)machine.locals[3]);
        begin(&machine, SERIES, 20000 + round);
        interpret(&machine);
        sum = mix(sum, machine.steps ^ (uint64_t)machine.locals[1]);
    }
    return (int64_t)sum;
}
