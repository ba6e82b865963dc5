//! Makes the program of a failing seed small: `reduce <body> <seed> [words of the error…]`.
//!
//! A smaller program counts as failing if its error has all of these words.

use loopopt::fuzzing::{Body, Statistics, bytes_of, reduce};

fn main() {
    // A panic is reported with the program that caused it.
    std::panic::set_hook(Box::new(|_| {}));
    let args: Vec<String> = std::env::args().skip(1).collect();
    let body = Body::named(&args[0]).expect("there is a body of this name");
    let seed: u64 = args[1].parse().expect("a seed");
    let words = &args[2..];
    let error = |bytes: &[u8]| {
        let mut statistics = Statistics::default();
        let result = body.run_bytes(bytes, &mut statistics).map_err(|error| format!("{error:#}"));
        result.err().or(statistics.upstream.pop()).filter(|error| words.iter().all(|word| error.contains(word)))
    };
    let bytes = bytes_of(seed);
    assert!(error(&bytes).is_some(), "the seed does not fail like that");
    let best = reduce(&bytes, |bytes| error(bytes).is_some());
    println!("{} of {} bytes", best.len(), bytes.len());
    println!("{}", error(&best).expect("it fails still"));
}
