//! Runs many generated programs: `campaign [body] [count] [first seed] [threads]`.
//!
//! Prints what differs, with its seed, and at the end how often each pass fired.

use loopopt::fuzzing::{BODIES, Body, Statistics};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

fn main() {
    // A panic is reported with the program that caused it.
    std::panic::set_hook(Box::new(|_| {}));
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| args.get(index).map_or(default, |arg| arg.parse().expect("a number"));
    let name = args.first().map_or("pipeline", String::as_str);
    let body = Body::named(name).unwrap_or_else(|| panic!("bodies: {:?}", BODIES.iter().map(|body| body.name)));
    let (count, first, threads) = (number(1, 1_000_000), number(2, 0), number(3, 2));

    let start = Instant::now();
    let (next, failures) = (AtomicU64::new(first), AtomicU64::new(0));
    let mut total = Statistics::default();
    std::thread::scope(|scope| {
        let run = || {
            let mut statistics = Statistics::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + count || failures.load(Ordering::Relaxed) >= 10 {
                    return statistics;
                }
                if let Err(error) = body.run_seed(seed, &mut statistics) {
                    failures.fetch_add(1, Ordering::Relaxed);
                    println!("{error:#}\n");
                }
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        for worker in workers {
            total.merge(worker.join().expect("no thread panics"));
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    println!("{total}");
    for what in total.upstream.iter().take(3) {
        println!("without loopopt: {what}\n");
    }
    println!("{name}: seeds {first}..{} in {seconds:.0} s, {:.0} per second", first + count, count as f64 / seconds);
    if failures.into_inner() > 0 {
        std::process::exit(1);
    }
}
