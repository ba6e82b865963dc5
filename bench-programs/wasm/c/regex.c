// Regular expressions: compiled to a program for many threads at once, and run over text
// test: 14
// bench: 380
#include "program.h"

enum { MOST = 128, SIZE = 20000 };

enum operation { LETTER, ANY, DIGIT, SPLIT, JUMP, MATCH };

struct instruction {
    uint8_t operation;
    char letter;
    uint16_t next, other;
};

static struct instruction code[MOST];
static int code_size;
static char text[SIZE + 1];
static uint16_t now[MOST], then[MOST];
static uint32_t marks[MOST], generation;

static int emit(enum operation operation, char letter) {
    code[code_size] = (struct instruction){(uint8_t)operation, letter, (uint16_t)(code_size + 1), 0};
    return code_size++;
}

// Makes room for one instruction at a place, before anything refers beyond it.
static void insert(int at) {
    for (int i = code_size++; i > at; i--) {
        code[i] = code[i - 1];
        code[i].next++;
        if (code[i].operation == SPLIT)
            code[i].other++;
    }
}

static const char *compile_choice(const char *pattern);

static const char *compile_atom(const char *pattern) {
    switch (*pattern) {
    case '(':
        return compile_choice(pattern + 1) + 1;
    case '.':
        emit(ANY, 0);
        return pattern + 1;
    case '#':
        emit(DIGIT, 0);
        return pattern + 1;
    default:
        emit(LETTER, *pattern);
        return pattern + 1;
    }
}

static void repeat(int begin, char how) {
    if (how == '+') {
        int split = emit(SPLIT, 0);
        code[split].next = (uint16_t)begin;
        code[split].other = (uint16_t)code_size;
        return;
    }
    insert(begin);
    code[begin] = (struct instruction){SPLIT, 0, (uint16_t)(begin + 1), 0};
    if (how == '*')
        code[emit(JUMP, 0)].next = (uint16_t)begin;
    code[begin].other = (uint16_t)code_size;
}

static const char *compile_sequence(const char *pattern) {
    while (*pattern != 0 && *pattern != '|' && *pattern != ')') {
        int begin = code_size;
        pattern = compile_atom(pattern);
        if (*pattern == '*' || *pattern == '+' || *pattern == '?')
            repeat(begin, *pattern++);
    }
    return pattern;
}

static const char *compile_choice(const char *pattern) {
    int begin = code_size;
    pattern = compile_sequence(pattern);
    if (*pattern == '|') {
        insert(begin);
        int jump = emit(JUMP, 0);
        code[begin] = (struct instruction){SPLIT, 0, (uint16_t)(begin + 1), (uint16_t)code_size};
        pattern = compile_choice(pattern + 1);
        code[jump].next = (uint16_t)code_size;
    }
    return pattern;
}

static int follow(uint16_t *list, int count, uint16_t at) {
    if (marks[at] == generation)
        return count;
    marks[at] = generation;
    if (code[at].operation == JUMP)
        return follow(list, count, code[at].next);
    if (code[at].operation == SPLIT) {
        count = follow(list, count, code[at].next);
        return follow(list, count, code[at].other);
    }
    list[count++] = at;
    return count;
}

static int fits(struct instruction one, char letter) {
    switch (one.operation) {
    case LETTER:
        return one.letter == letter;
    case ANY:
        return letter != '\n';
    case DIGIT:
        return letter >= '0' && letter <= '9';
    default:
        return 0;
    }
}

// How many places of the text a match ends at, wherever it begins.
static uint32_t count_matches(const char *in) {
    uint32_t matches = 0;
    uint16_t *list = now, *next = then;
    generation++;
    int count = follow(list, 0, 0);
    for (;; in++) {
        int next_count = 0;
        generation++;
        for (int i = 0; i < count; i++) {
            if (code[list[i]].operation == MATCH)
                matches++;
            else if (*in != 0 && fits(code[list[i]], *in))
                next_count = follow(next, next_count, code[list[i]].next);
        }
        if (*in == 0)
            return matches;
        count = follow(next, next_count, 0);
        uint16_t *kept = list;
        list = next;
        next = kept;
    }
}

static const char *const PATTERNS[6] = {"ab*c", "(a|b)+c?d", "#+.#+", "(ab|ba)(c|d)*a", "a.c(d|#)+a", "(a|(b|c)d)*##"};

int64_t run(int32_t rounds) {
    uint32_t state = 55;
    for (int i = 0; i < SIZE; i++)
        text[i] = "aabbccdd01\n"[next_random(&state) % 11u];
    text[SIZE] = 0;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        code_size = 0;
        compile_choice(PATTERNS[round % 6]);
        emit(MATCH, 0);
        text[(uint32_t)round * 1009u % SIZE] = 'a';
        sum = mix(sum, count_matches(text));
    }
    return (int64_t)sum;
}
