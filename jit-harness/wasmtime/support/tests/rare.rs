//! The calls for which blocks are marked as cold are those that Wasmtime makes when the fuel has run out.

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use loopopt_wasmtime_support::{Pass, defined_function, mark_rare, with_pass};
use std::cell::RefCell;
use std::rc::Rc;
use wasmtime::{Config, Engine, Module};

/// A loop that asks for the fuel, and a call of the program.
const MODULE: &str = r#"
(module
  (import "a" "g" (func $g))
  (func (export "f") (loop $l (call $g) (br $l))))
"#;

/// How many blocks call, and how many of these are cold, before and after blocks are marked.
#[derive(Default)]
struct Calls {
    before: [usize; 2],
    after: [usize; 2],
}

impl Pass for Calls {
    fn run(&mut self, ctx: &mut Context, _: &dyn TargetIsa, _: &mut ControlPlane) -> CodegenResult<()> {
        if defined_function(&ctx.func).is_some() {
            self.before = calling(&ctx.func);
            mark_rare(&mut ctx.func);
            self.after = calling(&ctx.func);
        }
        Ok(())
    }

    fn fingerprint(&self) -> String {
        "calls".into()
    }
}

fn calling(func: &Function) -> [usize; 2] {
    let calls = |&block: &Block| func.layout.block_insts(block).any(|inst| func.dfg.insts[inst].opcode().is_call());
    let blocks: Vec<Block> = func.layout.blocks().filter(calls).collect();
    [blocks.len(), blocks.iter().filter(|&&block| func.layout.is_cold(block)).count()]
}

fn calls(fuel: bool) -> Calls {
    let calls = Rc::new(RefCell::new(Calls::default()));
    let mut config = Config::new();
    config.consume_fuel(fuel);
    let engine = Engine::new(&config).expect("there is such an engine");
    with_pass(&calls, || Module::new(&engine, MODULE).expect("it compiles")).expect("the hook is free");
    calls.take()
}

#[test]
fn what_is_called_when_the_fuel_has_run_out_is_cold() {
    let Calls { before, after } = calls(true);
    assert_eq!(before, [3, 0], "Wasmtime marks none of them");
    assert_eq!(after, [3, 2], "at the start and in the loop, but not the program's own call");
}

#[test]
fn without_fuel_nothing_is_cold() {
    assert_eq!(calls(false).after, [1, 0]);
}
