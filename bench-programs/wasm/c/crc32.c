// CRC-32 by table, by bit and by four tables; all three must agree
// test: 4
// bench: 120
#include "program.h"

enum { SIZE = 256 * 1024 };

static uint32_t tables[4][256];
static uint8_t data[SIZE];

static uint32_t by_bit(const uint8_t *bytes, size_t length) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

static void make_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        tables[0][i] = crc;
    }
    for (int t = 1; t < 4; t++)
        for (int i = 0; i < 256; i++)
            tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
}

static uint32_t by_table(const uint8_t *bytes, size_t length) {
    uint32_t crc = ~0u;
    while (length-- > 0)
        crc = crc >> 8 ^ tables[0][(crc ^ *bytes++) & 0xff];
    return ~crc;
}

static uint32_t by_four(const uint8_t *bytes, size_t length) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i + 4 <= length; i += 4) {
        crc ^= (uint32_t)bytes[i] | (uint32_t)bytes[i + 1] << 8 | (uint32_t)bytes[i + 2] << 16 | (uint32_t)bytes[i + 3] << 24;
        crc = tables[3][crc & 0xff] ^ tables[2][crc >> 8 & 0xff] ^ tables[1][crc >> 16 & 0xff] ^ tables[0][crc >> 24];
    }
    return ~crc;
}

int64_t run(int32_t rounds) {
    make_tables();
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (uint8_t)(i ^ i >> 8);
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        uint32_t one = by_table(data, SIZE), four = by_four(data, SIZE);
        uint32_t part = by_bit(data, SIZE / 8);
        if (one != four || part != by_table(data, SIZE / 8))
            return -1;
        sum = mix(sum, (uint64_t)one << 32 | part);
        data[(size_t)round * 97 % SIZE] ^= (uint8_t)one;
    }
    return (int64_t)sum;
}
