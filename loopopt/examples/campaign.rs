//! Runs many generated programs: `campaign [body] [count] [first seed] [threads] [fault]`.
//!
//! With a fault, a mistake that the passes are told to make, what fails says which programs show it.
//!
//! Prints what differs, with its seed, and at the end how often each pass fired. Of errors that begin alike, the first is
//! printed and the others are counted. Says on the standard error how far it is, every ten seconds.

use loopopt::fault::{self, Fault};
use loopopt::fuzzing::{BODIES, Body, Statistics};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Compiling small functions is allocating and freeing for a good part.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often to say how far it is.
const EVERY: Duration = Duration::from_secs(10);

fn main() {
    // A panic is reported with the program that caused it.
    std::panic::set_hook(Box::new(|_| {}));
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| args.get(index).map_or(default, |arg| arg.parse().expect("a number"));
    let name = args.first().map_or("pipeline", String::as_str);
    let names: Vec<_> = BODIES.iter().map(|body| body.name).collect();
    let body = Body::named(name).unwrap_or_else(|| panic!("the bodies are {names:?}"));
    let (count, first, threads) = (number(1, 1_000_000), number(2, 0), number(3, 2));

    let start = Instant::now();
    let next = AtomicU64::new(first);
    let failures = Mutex::new(BTreeMap::<String, Vec<u64>>::new());
    let fault = args.get(4).map(|name| {
        let known = Fault::ALL.iter().find(|fault| format!("{fault:?}") == *name);
        *known.unwrap_or_else(|| panic!("the faults are {:?}", Fault::ALL))
    });
    let run = || {
        let mut statistics = Statistics::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return statistics;
            }
            let mut run = || body.run_seed(seed, &mut statistics);
            let result = match fault {
                Some(fault) => fault::with(fault, run),
                None => run(),
            };
            if let Err(error) = result {
                let text = format!("{error:#}");
                let mut failures = failures.lock().expect("no thread panics");
                let seeds = failures.entry(kind(&text)).or_default();
                seeds.push(seed);
                if seeds.len() == 1 {
                    println!("{text}\n");
                }
            }
        }
    };
    let mut total = Statistics::default();
    std::thread::scope(|scope| {
        let (running, ended) = mpsc::channel();
        let next = &next;
        scope.spawn(move || say_how_far(|| next.load(Ordering::Relaxed) - first, count, &ended));
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        for worker in workers {
            total.merge(worker.join().expect("no thread panics"));
        }
        drop(running);
    });
    let seconds = start.elapsed().as_secs_f64();
    println!("{total}");
    for what in total.upstream.iter().take(3) {
        println!("without loopopt: {what}\n");
    }
    let failures = failures.into_inner().expect("no thread panics");
    for (kind, seeds) in &failures {
        println!("failed: {kind}: {} times, with the seeds {:?}", seeds.len(), &seeds[..seeds.len().min(6)]);
    }
    println!("{name}: seeds {first}..{} in {seconds:.0} s, {:.0} per second", first + count, count as f64 / seconds);
    std::process::exit(i32::from(!failures.is_empty()));
}

/// Says now and then how many of `count` programs have run, and how much time is left, until the sender of `ended` is dropped.
fn say_how_far(ran: impl Fn() -> u64, count: u64, ended: &Receiver<()>) {
    let start = Instant::now();
    while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let ran = ran().clamp(1, count);
        let left = start.elapsed().mul_f64((count - ran) as f64 / ran as f64);
        eprintln!("{} %, {:.0} s left: {ran} of {count} programs", 100 * ran / count, left.as_secs_f64());
    }
}

/// What errors of one cause have in common: the first line without numbers.
fn kind(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split_once(": ").map_or(line, |(_, rest)| rest);
    line.chars().filter(|char| !char.is_ascii_digit()).take(90).collect()
}
