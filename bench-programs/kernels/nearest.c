#include <stdint.h>

int64_t nearest(const int64_t *points, const int64_t *place, int64_t count, int64_t dimensions, int64_t rounds) {
    int64_t least = INT64_MAX;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t point = 0; point < count; point++) {
            int64_t distance = 0;
            for (int64_t d = 0; d < dimensions; d++) {
                int64_t difference = points[point * dimensions + d] - place[d];
                distance += difference * difference;
            }
            if (distance < least)
                least = distance;
        }
    }
    return least;
}
