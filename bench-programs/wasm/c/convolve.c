// Image filters: a kernel of given size, a blur in two passes, and edges
// test: 9
// bench: 380
// levels: o0 o1 o2 o2-simd
#include "program.h"

enum { WIDTH = 200, HEIGHT = 160, SIZE = 5 };

static uint8_t image[HEIGHT * WIDTH], out[HEIGHT * WIDTH];
static int32_t between[HEIGHT * WIDTH];

static const int32_t KERNEL[SIZE * SIZE] = {
    0, 1, 2, 1, 0, 1, 3, 5, 3, 1, 2, 5, 9, 5, 2, 1, 3, 5, 3, 1, 0, 1, 2, 1, 0,
};

static uint8_t clamp(int32_t value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void convolve(const int32_t *kernel, int size, int32_t divisor) {
    int half = size / 2;
    for (int y = half; y < HEIGHT - half; y++)
        for (int x = half; x < WIDTH - half; x++) {
            int32_t sum = 0;
            for (int j = 0; j < size; j++)
                for (int i = 0; i < size; i++)
                    sum += kernel[j * size + i] * image[(y + j - half) * WIDTH + x + i - half];
            out[y * WIDTH + x] = clamp(sum / divisor);
        }
}

static void blur(void) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 1; x < WIDTH - 1; x++) {
            const uint8_t *at = image + y * WIDTH + x;
            between[y * WIDTH + x] = at[-1] + 2 * at[0] + at[1];
        }
    for (int y = 1; y < HEIGHT - 1; y++)
        for (int x = 1; x < WIDTH - 1; x++) {
            const int32_t *at = between + y * WIDTH + x;
            out[y * WIDTH + x] = (uint8_t)((at[-WIDTH] + 2 * at[0] + at[WIDTH] + 8) >> 4);
        }
}

static void edges(void) {
    for (int y = 1; y < HEIGHT - 1; y++)
        for (int x = 1; x < WIDTH - 1; x++) {
            const uint8_t *at = image + y * WIDTH + x;
            int32_t across = at[1 - WIDTH] + 2 * at[1] + at[1 + WIDTH] - at[-1 - WIDTH] - 2 * at[-1] - at[-1 + WIDTH];
            int32_t down = at[WIDTH - 1] + 2 * at[WIDTH] + at[WIDTH + 1] - at[-WIDTH - 1] - 2 * at[-WIDTH] - at[-WIDTH + 1];
            out[y * WIDTH + x] = clamp((across < 0 ? -across : across) + (down < 0 ? -down : down));
        }
}

static uint64_t checksum(uint64_t sum) {
    for (int i = 0; i < HEIGHT * WIDTH; i += 13)
        sum = mix(sum, out[i]);
    return sum;
}

int64_t run(int32_t rounds) {
    uint32_t state = 1000;
    uint64_t sum = 0;
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        out[i] = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < HEIGHT * WIDTH; i++)
            image[i] = (uint8_t)(i % WIDTH + (int)(next_random(&state) % 64u));
        convolve(KERNEL, SIZE, 60);
        sum = checksum(sum);
        blur();
        sum = checksum(sum);
        edges();
        sum = checksum(sum);
    }
    return (int64_t)sum;
}
