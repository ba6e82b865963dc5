// Game of life in checked arrays, and the distances in its final board by a queue that grows
// test: 1
// bench: 19
import { Random, mix } from "./lib/common";

const WIDTH = 96;
const HEIGHT = 64;

function step(from: StaticArray<u8>, to: StaticArray<u8>): void {
  for (let y = 1; y < HEIGHT - 1; y++) {
    for (let x = 1; x < WIDTH - 1; x++) {
      let count: u8 = 0;
      for (let dy = -1; dy <= 1; dy++) {
        for (let dx = -1; dx <= 1; dx++) count += from[(y + dy) * WIDTH + x + dx];
      }
      const at = y * WIDTH + x;
      count -= from[at];
      to[at] = count == 3 || (count == 2 && from[at] == 1) ? 1 : 0;
    }
  }
}

function flood(board: StaticArray<u8>): i32[] {
  const distances = new Array<i32>(WIDTH * HEIGHT).fill(-1);
  const queue = new Array<i32>();
  distances[0] = 0;
  queue.push(0);
  for (let head = 0; head < queue.length; head++) {
    const at = queue[head];
    const x = at % WIDTH;
    const next: i32[] = [x > 0 ? at - 1 : -1, x < WIDTH - 1 ? at + 1 : -1, at - WIDTH, at + WIDTH];
    for (let i = 0; i < next.length; i++) {
      const cell = next[i];
      if (cell < 0 || cell >= WIDTH * HEIGHT || board[cell] != 0 || distances[cell] >= 0) continue;
      distances[cell] = distances[at] + 1;
      queue.push(cell);
    }
  }
  return distances;
}

export function run(rounds: i32): i64 {
  const random = new Random(12);
  let board = new StaticArray<u8>(WIDTH * HEIGHT);
  let other = new StaticArray<u8>(WIDTH * HEIGHT);
  let sum: u64 = 0;
  for (let round = 0; round < rounds; round++) {
    for (let i = 1; i < WIDTH * HEIGHT; i++) board[i] = random.next() % 3 == 0 ? 1 : 0;
    for (let i = 0; i < WIDTH * HEIGHT; i++) other[i] = 0;
    for (let i = 0; i < 9; i++) {
      step(board, other);
      const kept = board;
      board = other;
      other = kept;
    }
    board[0] = 0;
    const distances = flood(board);
    for (let i = 0; i < distances.length; i += 5) sum = mix(sum, distances[i] as u64);
  }
  return sum as i64;
}
