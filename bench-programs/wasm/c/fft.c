// Fast Fourier transform of doubles, forth and back
// test: 53
// bench: 1500
#include "program.h"

enum { LOG = 12, N = 1 << LOG };

static double real[N], imaginary[N], cosine[N / 2], sine[N / 2];

// Roots of unity by halving angles: cos(x/2) and sin(x/2) from cos(x).
static void make_roots(void) {
    double step_cosine = -1.0, step_sine = 0.0;
    for (int i = 0; i < LOG - 1; i++) {
        double half = __builtin_sqrt((1.0 + step_cosine) * 0.5);
        step_sine = i == 0 ? 1.0 : step_sine / (2.0 * half);
        step_cosine = i == 0 ? 0.0 : half;
    }
    cosine[0] = 1.0;
    sine[0] = 0.0;
    for (int i = 1; i < N / 2; i++) {
        cosine[i] = cosine[i - 1] * step_cosine - sine[i - 1] * step_sine;
        sine[i] = cosine[i - 1] * step_sine + sine[i - 1] * step_cosine;
    }
}

static void reverse_bits(void) {
    for (unsigned i = 0, j = 0; i < N; i++) {
        if (i < j) {
            double kept = real[i];
            real[i] = real[j];
            real[j] = kept;
            kept = imaginary[i];
            imaginary[i] = imaginary[j];
            imaginary[j] = kept;
        }
        unsigned bit = N >> 1;
        while (bit != 0 && (j & bit) != 0) {
            j ^= bit;
            bit >>= 1;
        }
        j |= bit;
    }
}

static void transform(double direction) {
    reverse_bits();
    for (int size = 2; size <= N; size *= 2)
        for (int begin = 0; begin < N; begin += size)
            for (int i = 0; i < size / 2; i++) {
                int low = begin + i, high = low + size / 2;
                double c = cosine[i * (N / size)], s = direction * sine[i * (N / size)];
                double re = real[high] * c - imaginary[high] * s;
                double im = real[high] * s + imaginary[high] * c;
                real[high] = real[low] - re;
                imaginary[high] = imaginary[low] - im;
                real[low] += re;
                imaginary[low] += im;
            }
}

int64_t run(int32_t rounds) {
    make_roots();
    uint32_t state = 5;
    for (int i = 0; i < N; i++) {
        real[i] = (double)(next_random(&state) % 1000u) * 0.01;
        imaginary[i] = 0.0;
    }
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        transform(1.0);
        sum = mix(sum, bits(real[round % N]));
        transform(-1.0);
        for (int i = 0; i < N; i++) {
            real[i] /= (double)N;
            imaginary[i] /= (double)N;
        }
    }
    for (int i = 0; i < N; i++)
        sum = mix(sum, bits(real[i]));
    return (int64_t)sum;
}
