// The Mandelbrot set as a bitmap
// test: 290
// bench: 1500
#include "program.h"

enum { MAX = 2048, LIMIT = 50 };

static uint8_t bitmap[MAX * MAX / 8];

static int is_inside(double real, double imaginary) {
    double x = 0.0, y = 0.0, xx = 0.0, yy = 0.0;
    for (int i = 0; i < LIMIT; i++) {
        y = 2.0 * x * y + imaginary;
        x = xx - yy + real;
        xx = x * x;
        yy = y * y;
        if (xx + yy > 4.0)
            return 0;
    }
    return 1;
}

int64_t run(int32_t size) {
    if (size > MAX)
        size = MAX;
    size &= ~7;
    size_t bytes = 0;
    for (int32_t row = 0; row < size; row++)
        for (int32_t column = 0; column < size; column += 8) {
            unsigned byte = 0;
            for (int bit = 0; bit < 8; bit++) {
                double real = 2.0 * (double)(column + bit) / (double)size - 1.5;
                double imaginary = 2.0 * (double)row / (double)size - 1.0;
                byte = byte << 1 | (unsigned)is_inside(real, imaginary);
            }
            bitmap[bytes++] = (uint8_t)byte;
        }
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum = mix(sum, bitmap[i]);
    return (int64_t)sum;
}
