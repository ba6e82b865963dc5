//! The entry points, as embedders use them: `run` and `compile`, a JIT module, an object file that the C compiler links.

#![allow(unsafe_code, reason = "the tests call functions that they compiled")]

use anyhow::{Context as _, Result, ensure};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, OptLevel};
use cranelift_codegen::{CodegenError, CompileError, CompiledCode, Context};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};
use cranelift_object::{ObjectBuilder, ObjectModule};
use loopopt::{LoopOptModule, LoopOptimizer, Options, lowering_isa};
use std::path::Path;
use std::process::Command;

/// `0 + 1 + … + (n - 1)`, with a while loop.
const SUM: &str = "function %sum(i64) -> i64 system_v {
block0(v0: i64):
    v1 = iconst.i64 0
    v2 = iconst.i64 1
    jump block1(v1, v1)
block1(v3: i64, v4: i64):
    v5 = icmp slt v3, v0
    brif v5, block2, block3
block2:
    v6 = iadd v4, v3
    v7 = iadd v3, v2
    jump block1(v7, v6)
block3:
    return v4
}";

/// The same loop with an operation of which no formula is known: it stays.
fn mixed() -> String {
    SUM.replace("iadd v4, v3", "bxor v4, v3")
}

/// Calls `visit` with `0 … n - 1`.
const VISIT: &str = "function %visit_all(i64) system_v {
    fn0 = u0:0(i64) system_v
block0(v0: i64):
    v1 = iconst.i64 0
    v2 = iconst.i64 1
    jump block1(v1)
block1(v3: i64):
    v5 = icmp slt v3, v0
    brif v5, block2, block3
block2:
    call fn0(v3)
    v7 = iadd v3, v2
    jump block1(v7)
block3:
    return
}";

const STRAIGHT: &str = "function %straight(i64) -> i64 system_v {
block0(v0: i64):
    brif v0, block1, block2(v0)
block1:
    v1 = iadd v0, v0
    jump block2(v1)
block2(v2: i64):
    return v2
}";

fn function(text: &str) -> Function {
    cranelift_reader::parse_functions(text).expect("valid CLIF").remove(0)
}

fn isa(settings: &[(&str, &str)]) -> Result<OwnedTargetIsa> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    for (name, value) in settings {
        flags.set(name, value)?;
    }
    let builder = cranelift_native::builder().map_err(anyhow::Error::msg)?;
    Ok(builder.finish(settings::Flags::new(flags))?)
}

fn optimized(text: &str, isa: &OwnedTargetIsa) -> Result<Context> {
    let mut ctx = Context::for_function(function(text));
    ctx.optimize(&**isa, &mut ControlPlane::default())?;
    Ok(ctx)
}

#[test]
fn run_then_compile() -> Result<()> {
    let isa = isa(&[])?;
    let mut ctx = optimized(&mixed(), &isa)?;
    let mut loops = LoopOptimizer::new(Options::default());
    let report = loops.run(&mut ctx, &*isa, &mut ControlPlane::default())?;
    ensure!(report.changed && report.loops == 1);
    ensure!(report.remarks.fired_counts().get("rotate") == Some(&1));
    ensure!(ctx.cfg.is_valid() && ctx.domtree.is_valid() && ctx.loop_analysis.is_valid());
    ensure!(ctx.loop_analysis.loops().count() == 2, "batches, and the rest");
    ctx.verify(&*isa)?;
    for value in ctx.func.dfg.values() {
        ensure!(ctx.func.dfg.resolve_aliases(value) == value, "{value} is an alias");
    }

    let mut fresh = Context::for_function(function(&mixed()));
    let code = loops.compile(&mut fresh, &*isa, &mut ControlPlane::default()).map_err(|error| error.inner)?;
    ensure!(!code.code_buffer().is_empty());
    ensure!(code.create_unwind_info(&*isa)?.is_some(), "unwind information is there");
    ensure!(fresh.func.to_string() == ctx.func.to_string(), "run and compile do the same");
    ensure!(loops.last_report().changed && loops.last_report().remarks == report.remarks);
    Ok(())
}

/// The machine code that is in the context.
fn bytes(ctx: &Context) -> Vec<u8> {
    ctx.compiled_code().map(|code| code.code_buffer().to_vec()).unwrap_or_default()
}

/// A call of `compile` can be put in the place of one of `Context::compile`: the compiler says so here.
#[test]
fn compile_stands_in_the_place_of_context_compile() -> Result<()> {
    type Compile<'c> = &'c mut dyn for<'a> FnMut(
        &'a mut Context,
        &dyn TargetIsa,
        &mut ControlPlane,
    ) -> Result<&'a CompiledCode, CompileError<'a>>;
    let isa = isa(&[])?;
    let check = |compile: Compile<'_>| -> Result<Vec<u8>> {
        let mut ctx = Context::for_function(function(SUM));
        ctx.set_disasm(true);
        let code = compile(&mut ctx, &*isa, &mut ControlPlane::default()).map_err(|error| error.inner)?;
        let returned = code.code_buffer().to_vec();
        ensure!(code.vcode.is_some(), "the disassembly was asked for");
        ensure!(bytes(&ctx) == returned, "the code is in the context");
        ensure!(ctx.compiled_code().context("just looked at")?.create_unwind_info(&*isa)?.is_some());
        ensure!(ctx.take_compiled_code().is_some_and(|code| code.code_buffer() == returned));
        // Another function, without a new context.
        ctx.clear();
        ctx.func = function(STRAIGHT);
        compile(&mut ctx, &*isa, &mut ControlPlane::default()).map_err(|error| error.inner)?;
        ensure!(!bytes(&ctx).is_empty() && bytes(&ctx) != returned);

        let mut wrong = Context::for_function(function(&SUM.replace("jump block1(v7, v6)", "jump block1(v7)")));
        let error = compile(&mut wrong, &*isa, &mut ControlPlane::default()).err().context("not valid")?;
        ensure!(matches!(error.inner, CodegenError::Verifier(_)) && error.func.name.to_string() == "%sum");
        Ok(returned)
    };
    let without = check(&mut |ctx, isa, plane| ctx.compile(isa, plane))?;
    let mut loops = LoopOptimizer::new(Options::default());
    let with = check(&mut |ctx, isa, plane| loops.compile(ctx, isa, plane))?;
    ensure!(with != without, "the loop is rotated");
    Ok(())
}

/// One optimizer for ISAs that differ: each gets the code that is its own.
#[test]
fn compile_knows_isas_apart() -> Result<()> {
    let frames = isa(&[("preserve_frame_pointers", "true")])?;
    let isas = [isa(&[])?, frames, isa(&[("opt_level", "none")])?, isa(&[("opt_level", "speed_and_size")])?];
    let mut shared = LoopOptimizer::new(Options::default());
    for isa in isas.iter().chain(isas.iter().rev()) {
        let code = |loops: &mut LoopOptimizer| -> Result<Vec<u8>> {
            let mut ctx = Context::for_function(function(SUM));
            loops.compile(&mut ctx, &**isa, &mut ControlPlane::default()).map_err(|error| error.inner)?;
            Ok(bytes(&ctx))
        };
        ensure!(code(&mut shared)? == code(&mut LoopOptimizer::new(Options::default()))?);
    }
    Ok(())
}

#[test]
fn nothing_is_done_at_opt_level_none() -> Result<()> {
    let isa = isa(&[("opt_level", "none")])?;
    let mut ctx = optimized(SUM, &isa)?;
    let before = ctx.func.to_string();
    let mut loops = LoopOptimizer::new(Options::default());
    let report = loops.run(&mut ctx, &*isa, &mut ControlPlane::default())?;
    ensure!(!report.changed && report.remarks.iter().len() == 0 && ctx.func.to_string() == before);
    ensure!(ctx.cfg.is_valid() && ctx.domtree.is_valid() && ctx.loop_analysis.is_valid());

    let mut ctx = Context::for_function(function(SUM));
    loops.compile(&mut ctx, &*isa, &mut ControlPlane::default()).map_err(|error| error.inner)?;
    let with = bytes(&ctx);
    let mut ctx = Context::for_function(function(SUM));
    ctx.compile(&*isa, &mut ControlPlane::default()).map_err(|error| error.inner)?;
    ensure!(with == bytes(&ctx) && loops.rewrites() == 0);

    let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::None, Options::default())?;
    define(&mut module, "sum", SUM)?;
    ensure!(module.totals().functions == 1 && module.totals().changed == 0);
    Ok(())
}

/// At `opt_level=speed_and_size` nothing copies code, and [`Options::for_size`] says the same.
#[test]
fn nothing_is_copied_for_size() -> Result<()> {
    /// Runs 16 times, with a check in each iteration.
    const CHECKED: &str = "function %checked(i64, i64) -> i64 system_v {
    block0(v0: i64, v1: i64):
        v2 = iconst.i64 0
        v12 = iconst.i64 1
        v13 = iconst.i64 16
        jump block1(v2, v2)
    block1(v3: i64, v4: i64):
        v5 = icmp ult v3, v1
        trapz v5, user1
        v6 = imul v3, v13
        v7 = iadd v0, v6
        v8 = load.i64 v7
        v9 = iadd v4, v8
        v10 = iadd v3, v12
        v11 = icmp ult v10, v13
        brif v11, block1(v10, v9), block2
    block2:
        return v9
    }";
    let sized = isa(&[("opt_level", "speed_and_size")])?;
    let run = |text: &str, isa: &OwnedTargetIsa, options: Options| -> Result<(String, Vec<&'static str>)> {
        let mut ctx = optimized(text, isa)?;
        let report = LoopOptimizer::new(options).run(&mut ctx, &**isa, &mut ControlPlane::default())?;
        Ok((ctx.func.to_string(), report.remarks.fired_counts().into_keys().collect()))
    };
    let copies = ["full_unroll", "partial_unroll", "peel", "tail_duplicate", "transfer", "unswitch", "version"];
    for text in [&mixed(), CHECKED] {
        let (speed, fired) = run(text, &isa(&[])?, Options::default())?;
        ensure!(fired.iter().any(|pass| copies.contains(pass)), "{fired:?}");
        let (small, fired) = run(text, &sized, Options::default())?;
        ensure!(!fired.iter().any(|pass| copies.contains(pass)), "{fired:?}");
        ensure!(small.lines().count() < speed.lines().count());
        ensure!(run(text, &isa(&[])?, Options::for_size())?.0 == small);
    }
    ensure!(run(&mixed(), &sized, Options::default())?.1.contains(&"rotate"), "the test of a loop may be copied");
    Ok(())
}

#[test]
fn function_without_loops_is_untouched() -> Result<()> {
    let isa = isa(&[])?;
    let mut ctx = optimized(STRAIGHT, &isa)?;
    let before = ctx.func.clone();
    let report = LoopOptimizer::new(Options::default()).run(&mut ctx, &*isa, &mut ControlPlane::default())?;
    ensure!(!report.changed && report.loops == 0 && report.remarks.iter().len() == 0);
    ensure!(ctx.func.to_string() == before.to_string());
    ensure!(ctx.cfg.is_valid() && ctx.domtree.is_valid() && ctx.loop_analysis.is_valid());
    Ok(())
}

#[test]
fn second_run_changes_nothing() -> Result<()> {
    let isa = isa(&[])?;
    // Of the remainder loop, and of batches, batches can be made.
    let mut options = Options::default();
    options.passes = Some(loopopt::pass_names().filter(|&name| name != "partial_unroll").map(String::from).collect());
    options.select_max_insts_per_call = 0;
    let mut loops = LoopOptimizer::new(options);
    for text in [SUM, VISIT] {
        let mut ctx = optimized(text, &isa)?;
        ensure!(loops.run(&mut ctx, &*isa, &mut ControlPlane::default())?.changed);
        let once = ctx.func.to_string();
        ensure!(!loops.run(&mut ctx, &*isa, &mut ControlPlane::default())?.changed);
        ensure!(ctx.func.to_string() == once);
    }
    Ok(())
}

#[test]
fn same_input_gives_same_output() -> Result<()> {
    let isa = isa(&[])?;
    let output = |loops: &mut LoopOptimizer| -> Result<String> {
        let mut ctx = optimized(SUM, &isa)?;
        loops.run(&mut ctx, &*isa, &mut ControlPlane::default())?;
        Ok(ctx.func.to_string())
    };
    let mut reused = LoopOptimizer::new(Options::default());
    let first = output(&mut reused)?;
    ensure!(output(&mut reused)? == first);
    ensure!(std::thread::scope(|scope| scope.spawn(|| output(&mut reused)).join().expect("no panic"))? == first);
    Ok(())
}

fn jit() -> Result<JITModule> {
    Ok(JITModule::new(JITBuilder::new(default_libcall_names())?))
}

fn define(module: &mut impl Module, name: &str, text: &str) -> Result<(FuncId, Context)> {
    let mut ctx = module.make_context();
    ctx.func = function(text);
    let id = module.declare_function(name, Linkage::Export, &ctx.func.signature)?;
    module.define_function(id, &mut ctx)?;
    Ok((id, ctx))
}

/// What is defined in the module is optimized; what is defined in the module inside of it is not.
#[test]
fn methods_of_module_are_those_of_the_wrapper() -> Result<()> {
    let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::Speed, Options::default())?;
    let (_, wrapped) = define(&mut module, "generic", SUM)?;
    let mut ctx = module.make_context();
    ctx.func = function(SUM);
    let id = module.declare_function("method", Linkage::Export, &ctx.func.signature)?;
    module.define_function(id, &mut ctx)?;
    ensure!(bytes(&ctx) == bytes(&wrapped) && module.totals().changed == 2);

    let inner: &mut JITModule = &mut module;
    let (_, plain) = define(inner, "inner", SUM)?;
    ensure!(bytes(&plain) != bytes(&wrapped) && module.totals().functions == 2);
    module.finalize_definitions()?;
    Ok(())
}

#[test]
fn module_reports_each_function_and_totals() -> Result<()> {
    let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::Speed, Options::default())?;
    define(&mut module, "before", SUM)?;
    let (sender, seen) = std::sync::mpsc::channel();
    module.on_report(move |id, name, report| sender.send((id, name.to_owned(), report.changed)).expect("it is read"));
    let (sum, _) = define(&mut module, "sum", SUM)?;
    let (straight, _) = define(&mut module, "straight", STRAIGHT)?;
    ensure!(seen.try_iter().eq([(sum, "sum".to_owned(), true), (straight, "straight".to_owned(), false)]));
    let totals = module.totals();
    ensure!((totals.functions, totals.changed, totals.loops) == (3, 2, 2), "{totals:?}");
    ensure!(totals.fired.get("rotate") == Some(&2) && !totals.time.is_zero(), "{totals:?}");
    Ok(())
}

/// What the wrapped module refuses leaves nothing of itself there, nor of the function before.
#[test]
fn function_that_is_refused_leaves_nothing() -> Result<()> {
    for options in [Options::default(), directly()] {
        let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::Speed, options)?;
        define(&mut module, "sum", SUM)?;
        module.on_report(|_, _, _| panic!("it was not defined"));
        let result = define(&mut module, "sum", SUM).map_err(|error| error.downcast());
        ensure!(matches!(result, Err(Ok(ModuleError::DuplicateDefinition(_)))));
        ensure!(!module.last_report().changed && module.totals().functions == 1);
        ensure!(module.last_code().is_none());
    }
    Ok(())
}

/// Cranelift alone panics.
#[test]
fn function_without_a_block_is_an_error() -> Result<()> {
    let (isa, plane) = (isa(&[])?, &mut ControlPlane::default());
    let mut loops = LoopOptimizer::new(Options::default());
    let mut ctx = Context::for_function(Function::new());
    let result = loops.compile(&mut ctx, &*isa, plane).map(|_| ()).map_err(|error| error.inner);
    ensure!(matches!(result, Err(CodegenError::Unsupported(_))));
    ensure!(matches!(loops.compile_directly(&mut ctx, &*isa, plane), Err(CodegenError::Unsupported(_))));
    ensure!(!loops.run(&mut ctx, &*isa, plane)?.changed);
    let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::Speed, Options::default())?;
    let id = module.declare_function("empty", Linkage::Export, &ctx.func.signature)?;
    ensure!(matches!(module.define_function(id, &mut ctx), Err(ModuleError::Compilation(_))));
    Ok(())
}

/// The egraph pass removes both loops, and leaves the analysis of them.
#[test]
fn loops_are_those_of_the_function_afterwards() -> Result<()> {
    let text = "function %f(i64) -> i64 {
        block0(v0: i64):
            v1 = iconst.i8 0
            brif v1, block1(v0), block3
        block1(v2: i64):
            v3 = icmp ult v2, v0
            brif v3, block1(v2), block2
        block2:
            brif v0, block1(v0), block3
        block3:
            return v0
    }";
    let isa = isa(&[("opt_level", "speed")])?;
    let mut ctx = Context::for_function(function(text));
    ctx.optimize(&*isa, &mut ControlPlane::default())?;
    LoopOptimizer::new(Options::default()).run(&mut ctx, &*isa, &mut ControlPlane::default())?;
    ensure!(ctx.loop_analysis.loops().count() == 0);
    Ok(())
}

/// A module whose functions are not alike is given other settings on the way.
#[test]
fn settings_of_a_module_can_change() -> Result<()> {
    let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::Speed, Options::default())?;
    let (_, optimized) = define(&mut module, "optimized", SUM)?;
    ensure!(module.optimizer().rewrites() > 0);
    let mut nothing = Options::default();
    nothing.fuel = Some(0);
    module.set_options(nothing);
    let (_, plain) = define(&mut module, "plain", SUM)?;
    ensure!(module.optimizer().rewrites() == 0 && module.optimizer().options().fuel == Some(0));
    module.set_options(Options::default());
    let (_, again) = define(&mut module, "again", SUM)?;
    ensure!(bytes(&optimized) == bytes(&again) && bytes(&optimized) != bytes(&plain));
    Ok(())
}

/// Both ISAs have the flags that the module was made with.
#[test]
fn with_opt_level_keeps_flags() -> Result<()> {
    let flags = [("enable_nan_canonicalization", "true"), ("preserve_frame_pointers", "true")];
    let jit = JITModule::new(JITBuilder::with_flags(&flags, default_libcall_names())?);
    let module = LoopOptModule::with_opt_level(jit, OptLevel::SpeedAndSize, Options::default())?;
    for isa in [module.isa(), module.inner().isa()] {
        ensure!(
            isa.flags().preserve_frame_pointers() && !isa.flags().use_colocated_libcalls() && !isa.flags().is_pic()
        );
    }
    ensure!(module.isa().flags().opt_level() == OptLevel::SpeedAndSize);
    ensure!(module.inner().isa().flags().enable_nan_canonicalization());
    ensure!(!module.isa().flags().enable_nan_canonicalization(), "it is done once");

    let fast = JITModule::new(JITBuilder::with_flags(&[("opt_level", "speed")], default_libcall_names())?);
    let error = LoopOptModule::with_opt_level(fast, OptLevel::Speed, Options::default()).err().context("refused")?;
    ensure!(error.to_string().contains("opt_level=none"), "{error}");
    Ok(())
}

/// It is the module that lowers, or the wrapper.
#[test]
fn jit_module() -> Result<()> {
    let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::Speed, Options::default())?;
    let (id, ctx) = define(&mut module, "sum", SUM)?;
    ensure!(!bytes(&ctx).is_empty() && module.last_code().is_none());
    sums_numbers(module, id)?;

    let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::Speed, directly())?;
    let (id, ctx) = define(&mut module, "sum", SUM)?;
    let code = module.last_code().context("it was lowered here")?;
    ensure!(ctx.compiled_code().is_none() && !code.code_buffer().is_empty());
    ensure!(code.create_unwind_info(module.isa())?.is_some());
    sums_numbers(module, id)
}

/// Calls of other functions are relocated, and functions with exception tables are left to the module.
#[test]
fn module_that_lowers_directly() -> Result<()> {
    const CALLER: &str = "function %caller(i64) -> i64 {
        fn0 = u0:0(i64) -> i64
        block0(v0: i64):
            v1 = call fn0(v0)
            v2 = iconst.i64 1
            v3 = iadd v1, v2
            return v3
    }";
    const CATCHER: &str = "function %catcher(i64) -> i64 tail {
        sig0 = (i64) -> i64 tail
        fn0 = u0:0 sig0
        block0(v0: i64):
            try_call fn0(v0), sig0, block1(ret0), [ default: block1(exn0) ]
        block1(v1: i64):
            return v1
    }";
    let mut module = LoopOptModule::with_opt_level(jit()?, OptLevel::Speed, directly())?;
    let (sum, _) = define(&mut module, "sum", SUM)?;
    ensure!(sum.as_u32() == 0, "the others call it by this number");
    let (caller, _) = define(&mut module, "caller", CALLER)?;
    ensure!(module.last_code().context("it was lowered here")?.buffer.relocs().len() == 1);
    let (_, ctx) = define(&mut module, "catcher", CATCHER)?;
    ensure!(module.last_code().is_none() && !bytes(&ctx).is_empty());
    module.finalize_definitions()?;
    let code = module.get_finalized_function(caller);
    // SAFETY: `code` is a finalized function of this type, and the module is still there.
    let caller = unsafe { std::mem::transmute::<*const u8, extern "C" fn(i64) -> i64>(code) };
    ensure!(caller(10) == 46);
    Ok(())
}

/// NaNs are made canonical for a module that asks for it, whoever lowers.
#[test]
fn module_that_lowers_directly_makes_nans_canonical() -> Result<()> {
    const ADD: &str = "function %add(f64, f64) -> f64 { block0(v0: f64, v1: f64): v2 = fadd v0, v1 return v2 }";
    let size = |canonical: &str| -> Result<usize> {
        let flags = [("enable_nan_canonicalization", canonical)];
        let jit = JITModule::new(JITBuilder::with_flags(&flags, default_libcall_names())?);
        let mut module = LoopOptModule::with_opt_level(jit, OptLevel::Speed, directly())?;
        define(&mut module, "add", ADD)?;
        Ok(module.last_code().context("it was lowered here")?.code_buffer().len())
    };
    ensure!(size("true")? > size("false")?);
    Ok(())
}

fn directly() -> Options {
    let mut options = Options::default();
    options.lowers_directly = true;
    options
}

/// Calls `id`, which is `SUM`.
fn sums_numbers(mut module: LoopOptModule<JITModule>, id: FuncId) -> Result<()> {
    ensure!(module.last_report().remarks.fired_counts().get("rotate") == Some(&1));
    module.finalize_definitions()?;
    let code = module.get_finalized_function(id);
    // SAFETY: `code` is a finalized function of this type, and the module is still there.
    let sum = unsafe { std::mem::transmute::<*const u8, extern "C" fn(i64) -> i64>(code) };
    for n in [-1, 0, 1, 2, 10] {
        ensure!(sum(n) == (0..n).sum::<i64>());
    }
    Ok(())
}

/// An object file with the two functions, `visit` imported.
fn object() -> Result<Vec<u8>> {
    let isa = isa(&[("is_pic", "true")])?;
    let mut builder = ObjectBuilder::new(lowering_isa(&*isa)?, "loops", default_libcall_names())?;
    builder.unwind_info(true);
    let mut options = Options::default();
    options.select_max_insts_per_call = 0;
    let mut module = LoopOptModule::new(ObjectModule::new(builder), isa, options)?;
    // The first function that is declared is `u0:0`.
    module.declare_function("visit", Linkage::Import, &function(VISIT).signature)?;
    for (name, text) in [("sum", SUM), ("visit_all", VISIT)] {
        let mut ctx = Context::for_function(function(text));
        let id = module.declare_function(name, Linkage::Export, &ctx.func.signature)?;
        module.define_function(id, &mut ctx)?;
        ensure!(module.last_report().changed, "{name} is rotated");
    }
    Ok(module.finish().emit()?)
}

/// Calls both, and in the third visit looks for `main` on the stack, after the frame of `visit_all`.
const MAIN: &str = r#"
#define _GNU_SOURCE
#include <stdint.h>
#include <unwind.h>

int64_t sum(int64_t);
void visit_all(int64_t);
int main(void);

static int64_t total;
static int main_seen;

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *unused) {
    (void)unused;
    if (_Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context)) == (void *)main) main_seen = 1;
    return _URC_NO_REASON;
}

void visit(int64_t i) {
    total += i;
    if (i == 2) _Unwind_Backtrace(step, 0);
}

int main(void) {
    if (sum(10) != 45 || sum(0) != 0 || sum(-3) != 0) return 1;
    visit_all(4);
    if (total != 6) return 2;
    return main_seen ? 0 : 3;
}
"#;

#[test]
fn object_module_linked_by_the_c_compiler() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("loops.o"), object()?)?;
    std::fs::write(path("main.c"), MAIN)?;
    run(Command::new("cc").arg("-o").arg(path("main")).arg(path("main.c")).arg(path("loops.o")), folder.path())?;
    run(&mut Command::new(path("main")), folder.path())
}

fn run(command: &mut Command, folder: &Path) -> Result<()> {
    let output = command.current_dir(folder).output().with_context(|| format!("{command:?} cannot be run"))?;
    ensure!(output.status.success(), "{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn module_with_another_isa_is_an_error() -> Result<()> {
    let refused = |module: OwnedTargetIsa, isa: OwnedTargetIsa| {
        let jit = JITModule::new(JITBuilder::with_isa(module, default_libcall_names()));
        LoopOptModule::new(jit, isa, Options::default()).err().map(|error| error.to_string())
    };
    let error = refused(isa(&[])?, isa(&[])?).context("the module would optimize again")?;
    ensure!(error.contains("lowering_isa"), "{error}");
    let error = refused(isa(&[("opt_level", "none"), ("preserve_frame_pointers", "true")])?, isa(&[])?);
    ensure!(error.is_some_and(|error| error.contains("preserve_frame_pointers")));
    let canonical = isa(&[("enable_nan_canonicalization", "true"), ("enable_verifier", "false")])?;
    ensure!(refused(lowering_isa(&*canonical)?, canonical).is_none());
    Ok(())
}

#[test]
fn context_that_was_not_optimized() -> Result<()> {
    let isa = isa(&[])?;
    let mut ctx = Context::for_function(function(SUM));
    let report = LoopOptimizer::new(Options::default()).run(&mut ctx, &*isa, &mut ControlPlane::default())?;
    ensure!(report.changed);
    ctx.verify(&*isa)?;
    Ok(())
}

#[test]
fn invalid_function_is_an_error_and_stays() -> Result<()> {
    let isa = isa(&[])?;
    // The back edge lacks an argument.
    let text = SUM.replace("jump block1(v7, v6)", "jump block1(v7)");
    let mut ctx = Context::for_function(function(&text));
    let before = ctx.func.to_string();
    let result = LoopOptimizer::new(Options::default()).run(&mut ctx, &*isa, &mut ControlPlane::default());
    ensure!(matches!(result, Err(CodegenError::Verifier(_))));
    ensure!(ctx.func.to_string() == before);
    Ok(())
}

#[test]
fn loop_at_the_entry_is_an_error_without_the_verifier_too() -> Result<()> {
    let isa = isa(&[("enable_verifier", "false")])?;
    let text = "function %f(i64) { block0(v0: i64): brif v0, block0(v0), block1 block1: return }";
    let mut ctx = Context::for_function(function(text));
    let before = ctx.func.to_string();
    let result = LoopOptimizer::new(Options::default()).run(&mut ctx, &*isa, &mut ControlPlane::default());
    ensure!(matches!(result, Err(CodegenError::Unsupported(_))));
    ensure!(ctx.func.to_string() == before);
    Ok(())
}

#[test]
fn fuel_bounds_the_rewrites_and_is_counted() -> Result<()> {
    let isa = isa(&[])?;
    let with_fuel = |fuel| -> Result<(String, u64)> {
        let mut options = Options::default();
        options.fuel = fuel;
        options.verify_each_pass = true;
        let mut loops = LoopOptimizer::new(options);
        let mut ctx = optimized(SUM, &isa)?;
        loops.run(&mut ctx, &*isa, &mut ControlPlane::default())?;
        Ok((ctx.func.to_string(), loops.rewrites()))
    };
    let (all, rewrites) = with_fuel(None)?;
    ensure!(rewrites >= 1);
    for fuel in 0..=rewrites {
        ensure!(with_fuel(Some(fuel))?.1 == fuel);
    }
    ensure!(with_fuel(Some(rewrites))?.0 == all);
    ensure!(with_fuel(Some(0))?.0 == optimized(SUM, &isa)?.func.to_string());
    Ok(())
}

#[test]
fn report_has_times_and_dumps() -> Result<()> {
    let isa = isa(&[])?;
    let mut options = Options::default();
    options.dumps = true;
    let mut ctx = optimized(SUM, &isa)?;
    let report = LoopOptimizer::new(options).run(&mut ctx, &*isa, &mut ControlPlane::default())?;
    ensure!(report.dumps.first().is_some_and(|(name, _)| *name == "input"));
    ensure!(report.dumps.iter().any(|(name, text)| *name == "rotate" && text.contains("block")));
    ensure!(report.timings.iter().any(|(name, _)| *name == "rotate"));
    Ok(())
}
