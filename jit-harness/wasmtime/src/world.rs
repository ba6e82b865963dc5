//! The world that a program sees through WASI: the same in each run, without chance and without time.

use anyhow::{Result, anyhow};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};

use wasmtime_wasi::{Deterministic, FsPerms, HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// The most bytes that a program may write to its standard output, and to its standard error.
const MAX_OUTPUT: usize = 64 << 20;
/// What the clock advances by with each look at it.
const TICK: Duration = Duration::from_micros(1);

/// What a program is given.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The arguments, the name of the program first.
    pub args: Vec<String>,
    /// Folders that it may read: on the host, and as the program calls them.
    pub folders: Vec<(PathBuf, String)>,
    /// The standard input.
    pub stdin: Vec<u8>,
}

/// What a program writes.
#[derive(Clone)]
pub struct Output {
    /// The standard output.
    pub stdout: MemoryOutputPipe,
    /// The standard error.
    pub stderr: MemoryOutputPipe,
}

impl World {
    /// Creates the world.
    pub fn create(&self) -> Result<(WasiP1Ctx, Output)> {
        let output = Output { stdout: MemoryOutputPipe::new(MAX_OUTPUT), stderr: MemoryOutputPipe::new(MAX_OUTPUT) };
        let mut builder = WasiCtxBuilder::new();
        builder
            .args(&self.args)
            .stdin(MemoryInputPipe::new(self.stdin.clone()))
            .stdout(output.stdout.clone())
            .stderr(output.stderr.clone())
            .secure_random(Deterministic::new(vec![0x5a, 0x17, 0xc3]))
            .insecure_random(Deterministic::new(vec![0x2b, 0x8e]))
            .insecure_random_seed(1)
            .wall_clock(Clock::default())
            .monotonic_clock(Clock::default());
        for (host, guest) in &self.folders {
            builder
                .preopened_dir(host, guest, FsPerms::ReadOnly)
                .map_err(|error| anyhow!("{}: {error:#}", host.display()))?;
        }
        Ok((builder.build_p1(), output))
    }
}

/// A clock that advances only if somebody looks.
#[derive(Default)]
struct Clock(AtomicU64);

impl Clock {
    fn tick(&self) -> Duration {
        TICK * u32::try_from(self.0.fetch_add(1, Relaxed)).unwrap_or(u32::MAX)
    }
}

impl HostWallClock for Clock {
    fn resolution(&self) -> Duration {
        TICK
    }

    fn now(&self) -> Duration {
        self.tick()
    }
}

impl HostMonotonicClock for Clock {
    fn resolution(&self) -> u64 {
        TICK.as_nanos() as u64
    }

    fn now(&self) -> u64 {
        self.tick().as_nanos() as u64
    }
}
