// Five bodies under gravity, as structs
// test: 91000
// bench: 2500000
// long: 36000000
#include "program.h"

enum { BODIES = 5 };

struct body {
    double x, y, z, vx, vy, vz, mass;
};

static const struct body START[BODIES] = {
    {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 39.47841760435743},
    {4.84143144246472, -1.16032004402743, -0.10362204447112, 0.60632639299, 2.81198684491, -0.02521836165, 0.03769367487},
    {8.34336671824458, 4.12479856412430, -0.40352341711432, -1.01077434617, 1.82566237123, 0.00841576137, 0.01128632613},
    {12.89436956213913, -15.11115140169863, -0.22330757889266, 1.08279100644, 0.86871301816, -0.01083263740, 0.00172372405},
    {15.37969711485092, -25.91931460998796, 0.17925877295037, 0.97909073224, 0.59469899864, -0.03475595555, 0.00203368687},
};

static struct body bodies[BODIES];

static void rest(void) {
    double px = 0.0, py = 0.0, pz = 0.0;
    for (int i = 0; i < BODIES; i++) {
        bodies[i] = START[i];
        px += bodies[i].vx * bodies[i].mass;
        py += bodies[i].vy * bodies[i].mass;
        pz += bodies[i].vz * bodies[i].mass;
    }
    bodies[0].vx = -px / bodies[0].mass;
    bodies[0].vy = -py / bodies[0].mass;
    bodies[0].vz = -pz / bodies[0].mass;
}

static void attract(double time) {
    for (int i = 0; i < BODIES; i++) {
        struct body *a = &bodies[i];
        for (int j = i + 1; j < BODIES; j++) {
            struct body *b = &bodies[j];
            double dx = a->x - b->x, dy = a->y - b->y, dz = a->z - b->z;
            double square = dx * dx + dy * dy + dz * dz;
            double pull = time / (square * __builtin_sqrt(square));
            a->vx -= dx * b->mass * pull;
            a->vy -= dy * b->mass * pull;
            a->vz -= dz * b->mass * pull;
            b->vx += dx * a->mass * pull;
            b->vy += dy * a->mass * pull;
            b->vz += dz * a->mass * pull;
        }
    }
}

static void drift(double time) {
    for (int i = 0; i < BODIES; i++) {
        bodies[i].x += time * bodies[i].vx;
        bodies[i].y += time * bodies[i].vy;
        bodies[i].z += time * bodies[i].vz;
    }
}

int64_t run(int32_t steps) {
    rest();
    for (int32_t i = 0; i < steps; i++) {
        attract(0.01);
        drift(0.01);
    }
    uint64_t sum = 0;
    for (int i = 0; i < BODIES; i++) {
        sum = mix(sum, bits(bodies[i].x));
        sum = mix(sum, bits(bodies[i].vy));
        sum = mix(sum, bits(bodies[i].z));
    }
    return (int64_t)sum;
}
