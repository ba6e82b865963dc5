#include <stdint.h>

int64_t channels(const int64_t *data, int64_t pixels, int64_t channels, int64_t rounds) {
    int64_t total = 0;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t pixel = 0; pixel < pixels; pixel++) {
            int64_t sum = 0;
            for (int64_t channel = 0; channel < channels; channel++)
                sum += (channel + 1) * data[pixel * channels + channel];
            total += sum >> 2;
        }
    }
    return total;
}
