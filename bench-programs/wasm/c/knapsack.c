// Knapsack and number of ways to give change, by tables
// test: 15
// bench: 410
#include "program.h"

enum { ITEMS = 100, CAPACITY = 5000, COINS = 8 };

static int32_t best[CAPACITY + 1];
static uint64_t ways[CAPACITY + 1];

static int32_t fill_knapsack(const int32_t *weights, const int32_t *values) {
    for (int room = 0; room <= CAPACITY; room++)
        best[room] = 0;
    for (int item = 0; item < ITEMS; item++)
        for (int room = CAPACITY; room >= weights[item]; room--) {
            int32_t with = best[room - weights[item]] + values[item];
            if (with > best[room])
                best[room] = with;
        }
    return best[CAPACITY];
}

static uint64_t give_change(const int *coins) {
    ways[0] = 1;
    for (int amount = 1; amount <= CAPACITY; amount++)
        ways[amount] = 0;
    for (int i = 0; i < COINS; i++)
        for (int amount = coins[i]; amount <= CAPACITY; amount++)
            ways[amount] += ways[amount - coins[i]];
    return ways[CAPACITY];
}

int64_t run(int32_t rounds) {
    static const int COIN[COINS] = {1, 2, 5, 10, 20, 50, 100, 200};
    int32_t weights[ITEMS], values[ITEMS];
    uint32_t state = 13;
    uint64_t sum = 0;
    for (int32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < ITEMS; i++) {
            weights[i] = 20 + (int32_t)(next_random(&state) % 180u);
            values[i] = 1 + (int32_t)(next_random(&state) % 1000u);
        }
        sum = mix(sum, (uint64_t)fill_knapsack(weights, values));
        sum = mix(sum, give_change(COIN));
    }
    return (int64_t)sum;
}
