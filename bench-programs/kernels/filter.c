#include <stdint.h>

int64_t filter(const int64_t *image, int64_t width, int64_t height, const int64_t *kernel, int64_t size) {
    int64_t total = 0;
    for (int64_t y = 0; y < height - size; y++) {
        for (int64_t x = 0; x < width - size; x++) {
            int64_t sum = 0;
            for (int64_t row = 0; row < size; row++) {
                for (int64_t column = 0; column < size; column++)
                    sum += kernel[row * size + column] * image[(y + row) * width + x + column];
            }
            total += sum >> 4;
        }
    }
    return total;
}
