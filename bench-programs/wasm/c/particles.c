// Bouncing particles, as an array of structs and as a struct of arrays; both must agree
// test: 240
// bench: 6500
// levels: o0 o1 o2 o2-simd
#include "program.h"

enum { COUNT = 4000 };

struct particle {
    float x, y, z, vx, vy, vz, age;
    uint32_t bounces;
};

static struct particle particles[COUNT];

static struct {
    float x[COUNT], y[COUNT], z[COUNT], vx[COUNT], vy[COUNT], vz[COUNT], age[COUNT];
    uint32_t bounces[COUNT];
} arrays;

static float random_float(uint32_t *state) {
    return (float)(next_random(state) % 2000u) * 0.001f - 1.0f;
}

static void scatter(void) {
    uint32_t state = 321;
    for (int i = 0; i < COUNT; i++) {
        struct particle *p = &particles[i];
        arrays.x[i] = p->x = random_float(&state);
        arrays.y[i] = p->y = random_float(&state);
        arrays.z[i] = p->z = random_float(&state);
        arrays.vx[i] = p->vx = random_float(&state);
        arrays.vy[i] = p->vy = random_float(&state);
        arrays.vz[i] = p->vz = random_float(&state);
        arrays.age[i] = p->age = 0.0f;
        arrays.bounces[i] = p->bounces = 0;
    }
}

static void move_structs(float time) {
    for (int i = 0; i < COUNT; i++) {
        struct particle *p = &particles[i];
        p->vy -= 9.0f * time;
        p->x += p->vx * time;
        p->y += p->vy * time;
        p->z += p->vz * time;
        p->age += time;
        if (p->y < -1.0f) {
            p->y = -2.0f - p->y;
            p->vy = -0.9f * p->vy;
            p->bounces++;
        }
    }
}

static void move_arrays(float time) {
    for (int i = 0; i < COUNT; i++)
        arrays.vy[i] -= 9.0f * time;
    for (int i = 0; i < COUNT; i++) {
        arrays.x[i] += arrays.vx[i] * time;
        arrays.y[i] += arrays.vy[i] * time;
        arrays.z[i] += arrays.vz[i] * time;
        arrays.age[i] += time;
    }
    for (int i = 0; i < COUNT; i++)
        if (arrays.y[i] < -1.0f) {
            arrays.y[i] = -2.0f - arrays.y[i];
            arrays.vy[i] = -0.9f * arrays.vy[i];
            arrays.bounces[i]++;
        }
}

int64_t run(int32_t steps) {
    uint64_t sum = 0;
    scatter();
    for (int32_t i = 0; i < steps; i++) {
        move_structs(0.01f);
        move_arrays(0.01f);
    }
    for (int i = 0; i < COUNT; i++) {
        const struct particle *p = &particles[i];
        if (p->x != arrays.x[i] || p->y != arrays.y[i] || p->bounces != arrays.bounces[i])
            return -1;
        sum = mix(sum, bits((double)p->y));
        sum = mix(sum, bits((double)p->vy) + p->bounces);
    }
    return (int64_t)sum;
}
