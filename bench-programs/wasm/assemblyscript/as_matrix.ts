// Matrices as objects over typed arrays: product, transpose, sum of rows
// test: 1
// bench: 34
import { mix } from "./lib/common";

class Matrix {
  readonly cells: Float64Array;

  constructor(readonly rows: i32, readonly columns: i32) {
    this.cells = new Float64Array(rows * columns);
  }

  get(row: i32, column: i32): f64 {
    return this.cells[row * this.columns + column];
  }

  set(row: i32, column: i32, value: f64): void {
    this.cells[row * this.columns + column] = value;
  }

  times(other: Matrix): Matrix {
    const product = new Matrix(this.rows, other.columns);
    for (let i = 0; i < this.rows; i++) {
      for (let j = 0; j < other.columns; j++) {
        let sum: f64 = 0;
        for (let k = 0; k < this.columns; k++) sum += this.get(i, k) * other.get(k, j);
        product.set(i, j, sum);
      }
    }
    return product;
  }

  transposed(): Matrix {
    const result = new Matrix(this.columns, this.rows);
    for (let i = 0; i < this.rows; i++) {
      for (let j = 0; j < this.columns; j++) result.set(j, i, this.get(i, j));
    }
    return result;
  }
}

export function run(rounds: i32): i64 {
  let left = new Matrix(48, 64);
  const right = new Matrix(64, 48);
  for (let i = 0; i < 48; i++) {
    for (let j = 0; j < 64; j++) {
      left.set(i, j, f64((i * 7 + j * 3) % 11 - 5) * 0.125);
      right.set(j, i, f64((i * 5 + j * 13) % 17 - 8) * 0.0625);
    }
  }
  let sum: u64 = 0;
  for (let round = 0; round < rounds; round++) {
    const product = left.times(right);
    const other = product.transposed();
    for (let i = 0; i < 48; i++) {
      let row: f64 = 0;
      for (let j = 0; j < 48; j++) row += other.get(i, j) * f64(j + 1);
      sum = mix(sum, reinterpret<u64>(row));
      left.set(i, round % 64, f64(i - round % 50) * 0.25);
    }
  }
  return sum as i64;
}
