//! One loop, compiled by a JIT module without and with loopopt: `cargo run --release --example first_loop`.
#![allow(unsafe_code, reason = "machine code is called")]

use cranelift_codegen::{Context, settings::OptLevel};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use loopopt::{LoopOptModule, Options};
use std::{error::Error, time::Instant};

/// Adds up the first v1 elements of the array v0. Each index is checked against the length v2.
const SUM: &str = "function %sum(i64, i64, i64) -> i64 system_v {
block0(v0: i64, v1: i64, v2: i64):
    v3 = iconst.i64 0
    v4 = iconst.i64 1
    v5 = iconst.i64 8
    jump block1(v3, v3)
block1(v6: i64, v7: i64):
    v8 = icmp ult v6, v1
    brif v8, block2, block3
block2:
    v9 = icmp ult v6, v2
    trapz v9, user1
    v10 = imul v6, v5
    v11 = iadd v0, v10
    v12 = load.i64 notrap v11
    v13 = iadd v7, v12
    v14 = iadd v6, v4
    jump block1(v14, v13)
block3:
    return v7
}";

fn define(module: &mut impl Module) -> Result<FuncId, Box<dyn Error>> {
    let mut ctx = Context::for_function(cranelift_reader::parse_functions(SUM)?.remove(0));
    let id = module.declare_function("sum", Linkage::Local, &ctx.func.signature)?;
    module.define_function(id, &mut ctx)?;
    Ok(id)
}

fn time(name: &str, module: &mut JITModule, id: FuncId) -> Result<(), Box<dyn Error>> {
    module.finalize_definitions()?;
    // SAFETY: this is the machine code of a function of this type, and its module is still there.
    let sum: extern "C" fn(*const i64, i64, i64) -> i64 =
        unsafe { std::mem::transmute(module.get_finalized_function(id)) };
    let elements: Vec<i64> = (0..1_000_000).collect();
    let start = Instant::now();
    println!("{name}: {} in {:?}", sum(elements.as_ptr(), 1_000_000, 1_000_000), start.elapsed());
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let mut without = JITModule::new(JITBuilder::with_flags(&[("opt_level", "speed")], default_libcall_names())?);
    let unoptimized = JITModule::new(JITBuilder::new(default_libcall_names())?);
    let mut with = LoopOptModule::with_opt_level(unoptimized, OptLevel::Speed, Options::default())?;
    let ids = [define(&mut without)?, define(&mut with)?];
    with.last_report().remarks.iter().filter(|remark| remark.fired()).for_each(|remark| println!("{remark}"));
    time("Cranelift alone", &mut without, ids[0])?;
    time("with loopopt", &mut with, ids[1])
}
