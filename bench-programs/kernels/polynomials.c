#include <stdint.h>

double polynomials(const double *places, const double *factors, int64_t count, int64_t degree, int64_t rounds) {
    double sum = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < count; i++) {
            double value = 0;
            for (int64_t power = 0; power < degree; power++)
                value = value * places[i] + factors[power];
            sum += value;
        }
    }
    return sum;
}
