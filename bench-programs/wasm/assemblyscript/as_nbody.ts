// Bodies under gravity: objects with float fields in a checked array
// test: 4200
// bench: 140000
import { mix } from "./lib/common";

class Body {
  constructor(
    public x: f64,
    public y: f64,
    public z: f64,
    public vx: f64,
    public vy: f64,
    public vz: f64,
    readonly mass: f64,
  ) {}
}

class World {
  private bodies: Body[] = [];

  constructor(count: i32) {
    for (let i = 0; i < count; i++) {
      const at = f64(i);
      this.bodies.push(new Body(at * 2.5, 1.0 - at, at * 0.125, 0.25 - at * 0.0625, at * 0.03125, 0.0, 1.0 / (at + 1.0)));
    }
  }

  step(time: f64): void {
    const count = this.bodies.length;
    for (let i = 0; i < count; i++) {
      const a = this.bodies[i];
      for (let j = i + 1; j < count; j++) {
        const b = this.bodies[j];
        const dx = a.x - b.x;
        const dy = a.y - b.y;
        const dz = a.z - b.z;
        const square = dx * dx + dy * dy + dz * dz + 0.0625;
        const pull = time / (square * Math.sqrt(square));
        a.vx -= dx * b.mass * pull;
        a.vy -= dy * b.mass * pull;
        a.vz -= dz * b.mass * pull;
        b.vx += dx * a.mass * pull;
        b.vy += dy * a.mass * pull;
        b.vz += dz * a.mass * pull;
      }
    }
    for (let i = 0; i < count; i++) {
      const body = this.bodies[i];
      body.x += time * body.vx;
      body.y += time * body.vy;
      body.z += time * body.vz;
    }
  }

  checksum(): u64 {
    let sum: u64 = 0;
    for (let i = 0; i < this.bodies.length; i++) {
      sum = mix(sum, reinterpret<u64>(this.bodies[i].x));
      sum = mix(sum, reinterpret<u64>(this.bodies[i].vz));
    }
    return sum;
  }
}

export function run(steps: i32): i64 {
  const world = new World(6);
  for (let i = 0; i < steps; i++) world.step(0.015625);
  return world.checksum() as i64;
}
