#include <stdint.h>

int64_t checksum_of_places(int64_t *array, int64_t n, int64_t value) {
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        array[i] = value;
        total += (uint64_t)i * (uint64_t)value + (uint64_t)i * (uint64_t)i;
    }
    return (int64_t)total;
}
