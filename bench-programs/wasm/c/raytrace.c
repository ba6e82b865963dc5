// A small ray tracer: spheres over a plane, shadows, mirrors
// test: 190
// bench: 1200
#include "program.h"

enum { SPHERES = 6, BOUNCES = 4, MAX = 1536 };

struct vector {
    double x, y, z;
};

struct sphere {
    struct vector centre;
    double radius, shine, mirror;
};

static const struct sphere SCENE[SPHERES] = {
    {{0.0, 1.0, 6.0}, 1.0, 0.9, 0.3},   {{2.0, 0.5, 5.0}, 0.5, 0.7, 0.5},   {{-2.0, 0.75, 5.5}, 0.75, 0.8, 0.1},
    {{-0.75, 0.25, 4.0}, 0.25, 1.0, 0}, {{1.0, 0.375, 4.25}, 0.375, 0.6, 0.8}, {{0.0, 3.0, 9.0}, 2.0, 0.5, 0.6},
};

static uint8_t image[MAX * MAX];

static struct vector add(struct vector a, struct vector b, double times) {
    return (struct vector){a.x + b.x * times, a.y + b.y * times, a.z + b.z * times};
}

static double dot(struct vector a, struct vector b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vector unit(struct vector a) {
    double length = __builtin_sqrt(dot(a, a));
    return (struct vector){a.x / length, a.y / length, a.z / length};
}

// The nearest sphere on a ray, or -1; how far it is.
static int nearest(struct vector from, struct vector along, double *distance) {
    int hit = -1;
    for (int i = 0; i < SPHERES; i++) {
        struct vector to = add(from, SCENE[i].centre, -1.0);
        double b = dot(to, along), c = dot(to, to) - SCENE[i].radius * SCENE[i].radius;
        double under = b * b - c;
        if (under < 0.0)
            continue;
        double root = __builtin_sqrt(under), at = -b - root > 0.001 ? -b - root : -b + root;
        if (at > 0.001 && at < *distance) {
            *distance = at;
            hit = i;
        }
    }
    return hit;
}

static double light(struct vector at, struct vector normal) {
    const struct vector sun = {0.48, 0.8, -0.36};
    double far = 1e9, facing = dot(normal, sun);
    if (facing <= 0.0 || nearest(at, sun, &far) >= 0)
        return 0.1;
    return 0.1 + 0.9 * facing;
}

static double trace(struct vector from, struct vector along) {
    double seen = 0.0, weight = 1.0;
    for (int bounce = 0; bounce < BOUNCES; bounce++) {
        double distance = along.y < -0.001 ? -from.y / along.y : 1e9, shine = 0.0, mirror = 0.2;
        int is_plane = along.y < -0.001, hit = nearest(from, along, &distance);
        if (hit < 0 && !is_plane)
            return seen + weight * (0.25 + 0.5 * (along.y < 0.0 ? 0.0 : along.y));
        struct vector at = add(from, along, distance), normal = {0.0, 1.0, 0.0};
        if (hit >= 0) {
            normal = unit(add(at, SCENE[hit].centre, -1.0));
            shine = SCENE[hit].shine;
            mirror = SCENE[hit].mirror;
        } else {
            int64_t square = (int64_t)(at.x + 1000.0) + (int64_t)(at.z + 1000.0);
            shine = (square & 1) == 0 ? 0.9 : 0.3;
        }
        seen += weight * (1.0 - mirror) * shine * light(at, normal);
        weight *= mirror;
        if (weight == 0.0)
            break;
        from = at;
        along = add(along, normal, -2.0 * dot(along, normal));
    }
    return seen;
}

int64_t run(int32_t size) {
    if (size > MAX)
        size = MAX;
    uint64_t sum = 0;
    for (int32_t y = 0; y < size; y++)
        for (int32_t x = 0; x < size; x++) {
            double across = (double)(2 * x - size) / (double)size, up = (double)(size - 2 * y) / (double)size;
            double seen = trace((struct vector){0.0, 1.0, 0.0}, unit((struct vector){across, up, 1.5}));
            image[y * size + x] = (uint8_t)(seen > 1.0 ? 255 : (int)(seen * 255.0));
        }
    for (int32_t i = 0; i < size * size; i++)
        sum = mix(sum, image[i]);
    return (int64_t)sum;
}
