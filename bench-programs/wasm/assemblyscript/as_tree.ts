// A search tree of objects, built and thrown away again: classes, null checks, garbage collection
// test: 1
// bench: 40
import { Random, mix } from "./lib/common";

class Node {
  left: Node | null = null;
  right: Node | null = null;
  count: i32 = 1;

  constructor(readonly key: i32) {}
}

class Tree {
  root: Node | null = null;
  size: i32 = 0;

  add(key: i32): void {
    let at = this.root;
    if (at == null) {
      this.root = new Node(key);
      this.size++;
      return;
    }
    while (true) {
      if (key == at.key) {
        at.count++;
        return;
      }
      const next: Node | null = key < at.key ? at.left : at.right;
      if (next == null) break;
      at = next;
    }
    if (key < at.key) at.left = new Node(key);
    else at.right = new Node(key);
    this.size++;
  }

  depth(key: i32): i32 {
    let steps = 0;
    let at = this.root;
    while (at != null && at.key != key) {
      at = key < at.key ? at.left : at.right;
      steps++;
    }
    return at == null ? -steps : steps;
  }
}

function walk(node: Node | null, sum: u64): u64 {
  if (node == null) return sum;
  sum = walk(node.left, sum);
  sum = mix(sum, ((node.key as u64) << 16) + (node.count as u64));
  return walk(node.right, sum);
}

export function run(rounds: i32): i64 {
  let sum: u64 = 0;
  for (let round = 0; round < rounds; round++) {
    const random = new Random(5 + round);
    const tree = new Tree();
    for (let i = 0; i < 5000; i++) tree.add((random.next() % 20000) as i32);
    let steps: i64 = 0;
    for (let key = 0; key < 20000; key += 3) steps += tree.depth(key);
    sum = walk(tree.root, mix(sum, steps as u64));
    sum = mix(sum, tree.size as u64);
  }
  return sum as i64;
}
