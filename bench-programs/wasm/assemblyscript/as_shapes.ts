// Shapes in an array, summed through virtual methods; some are replaced in every round
// test: 36
// bench: 1200
import { Random, mix } from "./lib/common";

abstract class Shape {
  constructor(readonly size: f64) {}
  abstract area(): f64;
  corners(): i32 {
    return 0;
  }
}

class Square extends Shape {
  area(): f64 {
    return this.size * this.size;
  }
  corners(): i32 {
    return 4;
  }
}

class Triangle extends Shape {
  area(): f64 {
    return this.size * this.size * 0.5;
  }
  corners(): i32 {
    return 3;
  }
}

class Ring extends Shape {
  constructor(size: f64, readonly hole: f64) {
    super(size);
  }
  area(): f64 {
    return 3.140625 * (this.size * this.size - this.hole * this.hole);
  }
}

function make(random: Random): Shape {
  const size = f64(random.next() % 100) * 0.25;
  switch (random.next() % 3) {
    case 0:
      return new Square(size);
    case 1:
      return new Triangle(size);
    default:
      return new Ring(size, size * 0.5);
  }
}

export function run(rounds: i32): i64 {
  const random = new Random(333);
  const shapes = new Array<Shape>();
  for (let i = 0; i < 2000; i++) shapes.push(make(random));
  let sum: u64 = 0;
  for (let round = 0; round < rounds; round++) {
    let area: f64 = 0;
    let corners = 0;
    for (let i = 0; i < shapes.length; i++) {
      area += shapes[i].area();
      corners += shapes[i].corners();
    }
    sum = mix(sum, reinterpret<u64>(area));
    sum = mix(sum, corners as u64);
    for (let i = 0; i < 20; i++) shapes[(random.next() % 2000) as i32] = make(random);
  }
  return sum as i64;
}
