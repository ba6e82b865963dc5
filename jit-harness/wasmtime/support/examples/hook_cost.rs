//! What the patch of cranelift-codegen costs those who do not use it: one look at a `OnceLock` for each function.
//!
//! ```sh
//! cargo run --release --example hook_cost -p loopopt-wasmtime-support
//! ```

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, InstBuilder};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CodegenResult, Context, MidEndHook, set_mid_end_hook};
use std::error::Error;
use std::hash::Hasher;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// How often the smallest function is optimized for one sample.
const FUNCTIONS: u32 = 20_000;
/// How often the hook is looked for, for one sample.
const LOOKS: u32 = 10_000_000;
/// Samples of which the median counts.
const SAMPLES: usize = 21;

/// A hook that does nothing.
struct Idle;

impl MidEndHook for Idle {
    fn run(&self, _: &mut Context, _: &dyn TargetIsa, _: &mut ControlPlane) -> CodegenResult<()> {
        Ok(())
    }

    fn hash_settings(&self, _: &mut dyn Hasher) {}
}

/// As in cranelift-codegen, where it is private.
static HOOK: OnceLock<Box<dyn MidEndHook>> = OnceLock::new();

fn main() -> Result<(), Box<dyn Error>> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    flags.set("enable_verifier", "false")?;
    let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
    let mut ctx = smallest();
    let mut optimize = || -> CodegenResult<f64> {
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            let start = Instant::now();
            for _ in 0..FUNCTIONS {
                ctx.optimize(&*isa, &mut ControlPlane::default())?;
            }
            samples.push(start.elapsed().as_nanos() as f64 / f64::from(FUNCTIONS));
        }
        Ok(median(samples))
    };

    let unset = optimize()?;
    let look = median((0..SAMPLES).map(|_| look()).collect());
    set_mid_end_hook(Box::new(Idle))?;
    let idle = optimize()?;
    println!("Context::optimize of a function that only returns, no hook: {unset:.1} ns");
    println!("the look at a hook that is not set: {look:.2} ns, {:.2} % of that", 100.0 * look / unset);
    println!("Context::optimize of the same with a hook that does nothing: {idle:.1} ns");
    Ok(())
}

/// The smallest function that there is.
fn smallest() -> Context {
    let mut func = Function::new();
    let block = func.dfg.make_block();
    let mut pos = FuncCursor::new(&mut func);
    pos.insert_block(block);
    pos.ins().return_(&[]);
    Context::for_function(func)
}

/// Nanoseconds for one look.
fn look() -> f64 {
    let start = Instant::now();
    for _ in 0..LOOKS {
        black_box(black_box(&HOOK).get().is_some());
    }
    start.elapsed().as_nanos() as f64 / f64::from(LOOKS)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
