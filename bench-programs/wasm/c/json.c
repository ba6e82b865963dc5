// Writes JSON text, and reads it again by recursive descent, with checks
// test: 12
// bench: 320
#include "program.h"

enum { SIZE = 1 << 17, DEEPEST = 5 };

struct reader {
    const char *at, *end;
    uint64_t sum;
    uint32_t values, errors;
};

static char text[SIZE];
static size_t length;
static uint32_t random_state;

static void put(char letter) {
    if (length < SIZE)
        text[length++] = letter;
}

static void put_text(const char *letters) {
    while (*letters != 0)
        put(*letters++);
}

static void put_number(uint32_t number) {
    char digits[10];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10u);
    while ((number /= 10u) != 0);
    while (count > 0)
        put(digits[--count]);
}

static void put_string(uint32_t random) {
    put('"');
    for (uint32_t i = 0; i < random % 13u; i++)
        put_text(i % 11u == 10u ? "\\n" : i % 7u == 6u ? "\\u0041" : i % 2u == 0 ? "x" : "yz");
    put('"');
}

static void write_value(int depth) {
    uint32_t random = next_random(&random_state), kind = depth == 0 ? 7 : random % 8u;
    if (kind >= 5 && depth < DEEPEST) {
        int is_object = kind == 5;
        put(is_object ? '{' : '[');
        for (uint32_t i = 0; i < (depth == 0 ? 60u : 2u + (random >> 8) % 7u); i++) {
            put_text(i == 0 ? "" : ", ");
            if (is_object) {
                put_string(random >> (i % 8u));
                put_text(": ");
            }
            write_value(depth + 1);
        }
        put(is_object ? '}' : ']');
    } else if (kind == 0) {
        put_text(random & 64 ? "true" : random & 128 ? "false" : "null");
    } else if (kind < 3) {
        put_string(random >> 5);
    } else {
        put_text(random & 256 ? "-" : "");
        put_number(random >> 14);
        put_text(random & 512 ? ".25" : "");
        put_text(random & 1024 ? "e-2" : "");
    }
}

static void skip_space(struct reader *in) {
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n'))
        in->at++;
}

static int take(struct reader *in, char letter) {
    skip_space(in);
    if (in->at < in->end && *in->at == letter) {
        in->at++;
        return 1;
    }
    return 0;
}

static int is_digit(const struct reader *in) {
    return in->at < in->end && *in->at >= '0' && *in->at <= '9';
}

static void read_string(struct reader *in) {
    uint32_t hash = 2166136261u;
    while (in->at < in->end && *in->at != '"') {
        uint32_t letter = (uint8_t)*in->at++;
        if (letter == '\\' && in->at < in->end) {
            letter = (uint8_t)*in->at++;
            if (letter == 'u')
                for (int i = 0; i < 4 && in->at < in->end; i++)
                    letter = letter << 4 | ((uint32_t)*in->at++ & 15u);
        }
        hash = (hash ^ letter) * 16777619u;
    }
    in->sum = mix(in->sum, hash);
    in->errors += !take(in, '"');
}

static void read_number(struct reader *in) {
    int is_negative = take(in, '-'), exponent = 0, before = in->errors == 0 && is_digit(in);
    int64_t mantissa = 0;
    for (; is_digit(in); in->at++)
        mantissa = mantissa * 10 + (*in->at - '0');
    if (in->at < in->end && *in->at == '.')
        for (in->at++; is_digit(in); in->at++, exponent--)
            mantissa = mantissa * 10 + (*in->at - '0');
    if (in->at < in->end && *in->at == 'e') {
        int sign = in->at[1] == '-' ? -1 : 1;
        for (in->at += 2; is_digit(in); in->at++)
            exponent += sign * (*in->at - '0');
    }
    double value = (double)(is_negative ? -mantissa : mantissa);
    for (; exponent < 0; exponent++)
        value /= 10.0;
    in->sum = mix(in->sum, bits(value));
    in->errors += !before;
}

static void read_word(struct reader *in, const char *word) {
    while (*word != 0)
        in->errors += !take(in, *word++);
    in->sum = mix(in->sum, (uint8_t)word[-1]);
}

static void read_value(struct reader *in);

static void read_members(struct reader *in, char close, int is_object) {
    if (take(in, close))
        return;
    do {
        if (is_object) {
            in->errors += !take(in, '"');
            read_string(in);
            in->errors += !take(in, ':');
        }
        read_value(in);
    } while (take(in, ',') && in->errors == 0);
    in->errors += !take(in, close);
}

static void read_value(struct reader *in) {
    in->values++;
    skip_space(in);
    switch (in->at < in->end ? *in->at : 0) {
    case '{':
        in->at++;
        read_members(in, '}', 1);
        break;
    case '[':
        in->at++;
        read_members(in, ']', 0);
        break;
    case '"':
        in->at++;
        read_string(in);
        break;
    case 't':
        read_word(in, "true");
        break;
    case 'f':
        read_word(in, "false");
        break;
    case 'n':
        read_word(in, "null");
        break;
    default:
        read_number(in);
    }
}

int64_t run(int32_t rounds) {
    uint64_t sum = 0;
    random_state = 6;
    for (int32_t round = 0; round < rounds; round++) {
        length = 0;
        write_value(0);
        for (int again = 0; again < 8; again++) {
            struct reader in = {text, text + length, sum, 0, 0};
            read_value(&in);
            if (in.errors != 0)
                return -1;
            sum = mix(in.sum, in.values);
        }
    }
    return (int64_t)sum;
}
