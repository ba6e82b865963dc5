// Tokens of a small language by a table of states, and the values of its expressions by precedence
// test: 12
// bench: 340
#include "program.h"

enum { SIZE = 30000, STATES = 6, CLASSES = 6, DEEPEST = 64 };

enum kind { NONE, NAME, NUMBER, SIGN, SPACE };

enum letter_class { ALPHA, DIGIT, BLANK, SINGLE, DOUBLE, OTHER };

static char text[SIZE + 1];
static uint8_t classes[256];

// The next state, or 0 if the token ends before the letter. State 5 is a sign that may be doubled.
static const uint8_t NEXT[STATES][CLASSES] = {
    {1, 2, 4, 3, 5, 3}, {1, 1, 0, 0, 0, 0}, {0, 2, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {0, 0, 4, 0, 0, 0}, {0, 0, 0, 0, 3, 0},
};

static const uint8_t KIND[STATES] = {NONE, NAME, NUMBER, SIGN, SPACE, SIGN};

static void classify(void) {
    for (int i = 0; i < 256; i++)
        classes[i] = OTHER;
    for (int i = 'a'; i <= 'z'; i++)
        classes[i] = ALPHA;
    for (int i = '0'; i <= '9'; i++)
        classes[i] = DIGIT;
    classes[' '] = classes['\n'] = BLANK;
    for (const char *sign = "+*()-;"; *sign != 0; sign++)
        classes[(uint8_t)*sign] = SINGLE;
    classes['='] = classes['<'] = DOUBLE;
}

static void write_text(uint32_t seed) {
    uint32_t state = seed;
    for (int i = 0, is_operand = 1; i < SIZE; is_operand = !is_operand) {
        uint32_t random = next_random(&state);
        for (uint32_t j = 0; j <= random % 6u && i < SIZE; j++)
            text[i++] = !is_operand ? " \n "[j % 3u] : (random & 64) != 0 ? (char)('a' + (random >> j) % 26u) : (char)('1' + j);
        if (i < SIZE && !is_operand)
            text[i++] = "+*-<=;+*"[random >> 9 & 7];
    }
    text[SIZE] = 0;
}

static const char *next_token(const char *at, enum kind *kind) {
    unsigned state = 0, next;
    while (*at != 0 && (next = NEXT[state][classes[(uint8_t)*at]]) != 0) {
        state = next;
        at++;
    }
    *kind = (enum kind)KIND[state];
    return at;
}

static int precedence(char sign) {
    return sign == '*' ? 3 : sign == '+' || sign == '-' ? 2 : 1;
}

static uint32_t apply(char sign, uint32_t a, uint32_t b) {
    switch (sign) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '<':
        return a < b;
    default:
        return a == b;
    }
}

// Values and signs that wait; a semicolon ends an expression.
struct calculator {
    uint32_t values[DEEPEST];
    char signs[DEEPEST];
    int value_count, sign_count;
    uint64_t sum;
};

static void reduce(struct calculator *c, int least) {
    while (c->sign_count > 0 && c->value_count > 1 && precedence(c->signs[c->sign_count - 1]) >= least) {
        uint32_t right = c->values[--c->value_count];
        uint32_t *left = &c->values[c->value_count - 1];
        *left = apply(c->signs[--c->sign_count], *left, right);
    }
}

static void take(struct calculator *c, enum kind kind, const char *begin, const char *end) {
    if (kind == SIGN && *begin == ';') {
        reduce(c, 0);
        c->sum = mix(c->sum, c->value_count > 0 ? c->values[0] : 0);
        c->value_count = c->sign_count = 0;
    } else if (kind == SIGN && c->sign_count < DEEPEST) {
        reduce(c, precedence(*begin));
        c->signs[c->sign_count++] = *begin;
    } else if ((kind == NAME || kind == NUMBER) && c->value_count < DEEPEST) {
        uint32_t value = 0;
        for (; begin < end; begin++)
            value = value * (kind == NUMBER ? 10u : 31u) + (uint8_t)*begin % 48u;
        c->values[c->value_count++] = value;
    }
}

int64_t run(int32_t rounds) {
    classify();
    struct calculator calculator = {.sum = 0};
    for (int32_t round = 0; round < rounds; round++) {
        uint32_t counts[5] = {0};
        write_text(70u + (uint32_t)round);
        calculator.value_count = calculator.sign_count = 0;
        for (const char *at = text; *at != 0;) {
            enum kind kind;
            const char *end = next_token(at, &kind);
            counts[kind]++;
            take(&calculator, kind, at, end);
            at = end;
        }
        for (int i = 0; i < 5; i++)
            calculator.sum = mix(calculator.sum, counts[i]);
    }
    return (int64_t)calculator.sum;
}
