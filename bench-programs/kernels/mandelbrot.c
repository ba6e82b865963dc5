#include <stdint.h>

int64_t mandelbrot(int64_t width, int64_t height, int64_t limit) {
    int64_t total = 0;
    for (int64_t row = 0; row < height; row++) {
        for (int64_t column = 0; column < width; column++) {
            double cx = (double)column * (3.0 / (double)width) - 2.0;
            double cy = (double)row * (2.0 / (double)height) - 1.0;
            double x = 0.0, y = 0.0;
            for (int64_t step = 0; step < limit; step++) {
                double xx = x * x, yy = y * y;
                if (xx + yy > 4.0)
                    break;
                y = (x + x) * y + cy;
                x = xx - yy + cx;
                total++;
            }
        }
    }
    return total;
}
