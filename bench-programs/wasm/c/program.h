// What every program shares: exact integer types, the exported entry, random numbers, and checksums.
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __wasm__
#define EXPORT __attribute__((export_name("run")))
#else
#define EXPORT
#endif

EXPORT int64_t run(int32_t n);

// Next number of a xorshift sequence. The state is never zero.
static inline uint32_t next_random(uint32_t *state) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

// One step of a checksum that depends on the order of its values.
static inline uint64_t mix(uint64_t sum, uint64_t value) {
    return (sum ^ value) * 0x100000001b3u + (sum >> 29);
}

// The bits of a double, for checksums.
static inline uint64_t bits(double value) {
    union {
        double number;
        uint64_t word;
    } both;
    both.number = value;
    return both.word;
}

#endif
