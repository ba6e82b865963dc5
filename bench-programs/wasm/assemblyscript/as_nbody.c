// The task of as_nbody.ts
#include "program.h"

enum { BODIES = 6 };

static struct {
    double x, y, z, vx, vy, vz, mass;
} bodies[BODIES];

static void attract(int i, int j, double time) {
    double dx = bodies[i].x - bodies[j].x, dy = bodies[i].y - bodies[j].y, dz = bodies[i].z - bodies[j].z;
    double square = dx * dx + dy * dy + dz * dz + 0.0625;
    double pull = time / (square * __builtin_sqrt(square));
    bodies[i].vx -= dx * bodies[j].mass * pull;
    bodies[i].vy -= dy * bodies[j].mass * pull;
    bodies[i].vz -= dz * bodies[j].mass * pull;
    bodies[j].vx += dx * bodies[i].mass * pull;
    bodies[j].vy += dy * bodies[i].mass * pull;
    bodies[j].vz += dz * bodies[i].mass * pull;
}

int64_t run(int32_t steps) {
    for (int i = 0; i < BODIES; i++) {
        double at = i;
        bodies[i].x = at * 2.5;
        bodies[i].y = 1.0 - at;
        bodies[i].z = at * 0.125;
        bodies[i].vx = 0.25 - at * 0.0625;
        bodies[i].vy = at * 0.03125;
        bodies[i].vz = 0.0;
        bodies[i].mass = 1.0 / (at + 1.0);
    }
    const double time = 0.015625;
    for (int32_t step = 0; step < steps; step++) {
        for (int i = 0; i < BODIES; i++)
            for (int j = i + 1; j < BODIES; j++)
                attract(i, j, time);
        for (int i = 0; i < BODIES; i++) {
            bodies[i].x += time * bodies[i].vx;
            bodies[i].y += time * bodies[i].vy;
            bodies[i].z += time * bodies[i].vz;
        }
    }
    uint64_t sum = 0;
    for (int i = 0; i < BODIES; i++) {
        sum = mix(sum, bits(bodies[i].x));
        sum = mix(sum, bits(bodies[i].vz));
    }
    return (int64_t)sum;
}
