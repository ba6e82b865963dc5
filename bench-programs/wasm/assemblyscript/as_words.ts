// Words of a text are cut out, counted in a map of strings, and sorted
// test: 4
// bench: 110
import { Random, mix } from "./lib/common";

function writeText(random: Random, count: i32): string {
  const syllables: string[] = ["lo", "op", "he", "ad", "er", "la", "tch", "ex", "it"];
  const words = new Array<string>();
  for (let i = 0; i < count; i++) {
    let word = "";
    for (let j: u32 = 0; j <= random.next() % 3; j++) word += syllables[(random.next() >> 5) % 9];
    words.push(word);
  }
  return words.join(" ");
}

function cut(text: string): string[] {
  const words = new Array<string>();
  let begin = 0;
  for (let i = 0; i <= text.length; i++) {
    if (i == text.length || text.charCodeAt(i) == 32) {
      if (i > begin) words.push(text.substring(begin, i));
      begin = i + 1;
    }
  }
  return words;
}

function hash(word: string): u64 {
  let sum: u64 = 0;
  for (let i = 0; i < word.length; i++) sum = mix(sum, word.charCodeAt(i) as u64);
  return sum;
}

export function run(rounds: i32): i64 {
  let sum: u64 = 0;
  for (let round = 0; round < rounds; round++) {
    const words = cut(writeText(new Random(23 + round), 1000));
    const counts = new Map<string, i32>();
    for (let i = 0; i < words.length; i++) {
      const word = words[i];
      counts.set(word, counts.has(word) ? counts.get(word) + 1 : 1);
    }
    const known = counts.keys();
    known.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    for (let i = 0; i < known.length; i++) {
      sum = mix(sum, hash(known[i]));
      sum = mix(sum, counts.get(known[i]) as u64);
    }
  }
  return sum as i64;
}
