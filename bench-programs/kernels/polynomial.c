#include <stdint.h>

void polynomial(const double *coefficients, const double *points, double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double value = 0.0;
        for (int64_t k = 0; k < 8; k++)
            value = value * points[i] + coefficients[k];
        values[i] = value;
    }
}
