//! WebAssembly programs that Wasmer's Cranelift compiler compiles without and with loopopt.

use anyhow::{Result, anyhow};
use measure::Table;
use wasmer::sys::EngineBuilder;
use wasmer::{Instance, Module, Store, TypedFunction, Value, imports};

/// Adds up an array of numbers of 32 bits.
const SUM: &str = r#"(module
    (memory 4)
    (func (export "prepare") (param $n i32) (local $i i32)
        (loop $more
            (i32.store (i32.shl (local.get $i) (i32.const 2)) (i32.mul (local.get $i) (i32.const 7)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $i) (local.get $n)))))
    (func (export "run") (param $n i32) (result i32) (local $i i32) (local $sum i32)
        (block $done
            (loop $more
                (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
                (local.set $sum (i32.add (local.get $sum) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br $more)))
        (local.get $sum)))"#;

/// Counts the primes below a number.
const SIEVE: &str = r#"(module
    (memory 4)
    (func (export "run") (param $n i32) (result i32) (local $i i32) (local $k i32) (local $count i32)
        (block $cleared
            (loop $clear
                (br_if $cleared (i32.ge_u (local.get $i) (local.get $n)))
                (i32.store8 (local.get $i) (i32.const 0))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br $clear)))
        (local.set $i (i32.const 2))
        (block $done
            (loop $next
                (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
                (if (i32.eqz (i32.load8_u (local.get $i)))
                    (then
                        (local.set $count (i32.add (local.get $count) (i32.const 1)))
                        (local.set $k (i32.shl (local.get $i) (i32.const 1)))
                        (block $crossed
                            (loop $cross
                                (br_if $crossed (i32.ge_u (local.get $k) (local.get $n)))
                                (i32.store8 (local.get $k) (i32.const 1))
                                (local.set $k (i32.add (local.get $k) (local.get $i)))
                                (br $cross)))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br $next)))
        (local.get $count)))"#;

/// A number of Fibonacci's, with a counter in a global variable as compilers keep their stack pointer.
const FIBONACCI: &str = r#"(module
    (global $steps (mut i32) (i32.const 0))
    (func (export "run") (param $n i32) (result i32) (local $a i32) (local $b i32) (local $sum i32)
        (global.set $steps (i32.const 0))
        (local.set $b (i32.const 1))
        (block $done
            (loop $more
                (br_if $done (i32.ge_u (global.get $steps) (local.get $n)))
                (local.set $sum (i32.add (local.get $a) (local.get $b)))
                (local.set $a (local.get $b))
                (local.set $b (local.get $sum))
                (global.set $steps (i32.add (global.get $steps) (i32.const 1)))
                (br $more)))
        (local.get $a)))"#;

/// Reads past the end of the memory, which is a trap.
const TRAP: &str = r#"(module
    (memory 1 1)
    (func (export "run") (param $n i32) (result i32) (local $i i32) (local $sum i32)
        (loop $more
            (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $i))))
            (local.set $i (i32.add (local.get $i) (i32.const 4)))
            (br_if $more (i32.lt_u (local.get $i) (local.get $n))))
        (local.get $sum)))"#;

/// The exported function of a program, as this build of the compiler makes it, after its preparation.
macro_rules! compiled {
    ($compiler:ident, $source:expr, $argument:expr) => {{
        let mut store = Store::new(EngineBuilder::new($compiler::Cranelift::new()).engine());
        let module = Module::new(&store, $source)?;
        let instance = Instance::new(&mut store, &module, &imports! {})?;
        if let Ok(prepare) = instance.exports.get_function("prepare") {
            prepare.call(&mut store, &[Value::I32($argument)])?;
        }
        let run: TypedFunction<i32, i32> = instance.exports.get_typed_function(&store, "run")?;
        move || run.call(&mut store, $argument).map_err(|error| error.message())
    }};
}

fn compare(table: &mut Table, name: &str, source: &str, argument: i32, expected: i32) -> Result<()> {
    let (slow, fast) = (compiled!(without, source, argument), compiled!(with, source, argument));
    table.compare(name, &Ok(expected), slow, fast)
}

/// The number of primes below `n`.
fn primes(n: i32) -> i32 {
    (2..n).filter(|&i| (2..).take_while(|k| k * k <= i).all(|k| i % k != 0)).count() as i32
}

fn main() -> Result<()> {
    let mut table = Table::default();
    compare(&mut table, "sum", SUM, 50_000, (0..50_000).fold(0, |sum: i32, i| sum.wrapping_add(i * 7)))?;
    compare(&mut table, "sieve", SIEVE, 100_000, primes(100_000))?;
    let fibonacci = (0..20_000).fold((0_i32, 1_i32), |(a, b), _| (b, a.wrapping_add(b))).0;
    compare(&mut table, "fibonacci", FIBONACCI, 20_000, fibonacci)?;
    // The same trap in both.
    let traps = (compiled!(without, TRAP, 70_000)(), compiled!(with, TRAP, 70_000)());
    if traps.0 != traps.1 || !traps.0.as_ref().is_err_and(|message| message.contains("out of bounds memory access")) {
        return Err(anyhow!("the access out of bounds gives {:?} without loopopt and {:?} with it", traps.0, traps.1));
    }
    table.finish()
}
