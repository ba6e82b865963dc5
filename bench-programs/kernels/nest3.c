#include <stdint.h>

int64_t nest3(int64_t n) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n; k++)
                total = (total ^ (i + j)) + k;
    return total;
}
