//! What the patch of cranelift-codegen promises, inside Wasmtime. Its own unit test holds it to the same without Wasmtime.

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Opcode};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenError, CodegenResult, Context, MidEndHook, set_mid_end_hook};
use loopopt_wasmtime_support::{InstallError, Settings, defined_function, install, with_settings};
use std::hash::Hasher;
use std::sync::Mutex;
use wasmtime::{Config, Engine, Module, OptLevel};

/// Two functions. The first adds constants, which the egraph pass folds.
const MODULE: &str = r#"
(module
  (func (export "three") (result i32) (i32.add (i32.const 1) (i32.const 2)))
  (func (export "same") (param i32) (result i32) (local.get 0)))
"#;

/// Functions of modules that came to the hook, each with whether it adds.
static SEEN: Mutex<Vec<(u32, bool)>> = Mutex::new(Vec::new());

/// A pass that is not loopopt: sees what comes, and refuses functions with a division.
struct Other;

impl MidEndHook for Other {
    fn run(&self, ctx: &mut Context, _: &dyn TargetIsa, _: &mut ControlPlane) -> CodegenResult<()> {
        if has(&ctx.func, Opcode::Sdiv) {
            return Err(CodegenError::Unsupported("divisions".to_owned()));
        }
        if let Some((_, index)) = defined_function(&ctx.func) {
            SEEN.lock().expect("nobody panics").push((index, has(&ctx.func, Opcode::Iadd)));
        }
        Ok(())
    }

    fn hash_settings(&self, state: &mut dyn Hasher) {
        state.write(b"other");
    }
}

fn has(func: &Function, opcode: Opcode) -> bool {
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    insts.any(|inst| func.dfg.insts[inst].opcode() == opcode)
}

fn compile(level: OptLevel, text: &str) -> wasmtime::Result<Vec<(u32, bool)>> {
    let engine = Engine::new(Config::new().cranelift_opt_level(level))?;
    Module::new(&engine, text)?;
    let mut seen = std::mem::take(&mut *SEEN.lock().expect("nobody panics"));
    seen.sort_unstable();
    Ok(seen)
}

/// All in one test: the hook is that of the process.
#[test]
fn the_hook_is_called_once_for_each_function() {
    assert_eq!(compile(OptLevel::Speed, MODULE).expect("a module"), []);
    set_mid_end_hook(Box::new(Other)).expect("nobody else sets it");
    assert!(set_mid_end_hook(Box::new(Other)).is_err());

    assert_eq!(compile(OptLevel::None, MODULE).expect("a module"), []);
    assert_eq!(compile(OptLevel::Speed, MODULE).expect("a module"), [(0, false), (1, false)]);
    assert_eq!(compile(OptLevel::SpeedAndSize, MODULE).expect("a module"), [(0, false), (1, false)]);

    let division = "(module (func (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1))))";
    let error = compile(OptLevel::Speed, division).expect_err("the pass refuses it");
    assert!(format!("{error:?}").contains("divisions"), "{error:?}");

    // loopopt is not put in the place of a pass that is there.
    assert_eq!(install(Settings::default()), Err(InstallError::HookTaken));
    assert_eq!(with_settings(&Settings::default(), || ()), Err(InstallError::HookTaken));
}
