//! A program that embeds Wasmtime with loopopt: sums the words of an array, and prints what loopopt did to the loop.
//!
//! ```sh
//! cargo run --release --example embed -p loopopt-wasmtime-support
//! ```

use loopopt_wasmtime_support::{Settings, install};
use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use wasmtime::{Config, Engine, Instance, Module, ModuleVersionStrategy, Store};

/// The sum of the first so many words of the memory.
const SUM: &str = r#"
(module
  (memory (export "memory") 1)
  (func (export "sum") (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
        (local.set $sum (i32.add (local.get $sum) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
"#;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

/// The whole of it.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let remarks = Arc::new(Mutex::new(Vec::new()));
    let settings = Settings::default().on_report({
        let remarks = remarks.clone();
        move |compiled| {
            let (Some((_, index)), Ok(mut remarks)) = (compiled.defined(), remarks.lock()) else { return };
            let fired = compiled.report.remarks.iter().filter(|remark| remark.fired());
            remarks.extend(fired.map(|remark| format!("function {index}: {remark}")));
        }
    });

    let mut config = Config::new();
    config.module_version(ModuleVersionStrategy::Custom(settings.module_version()))?;
    install(settings)?;

    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, SUM)?;
    for remark in remarks.lock().map_err(|_| "a callback panicked")?.iter() {
        writeln!(out, "{remark}")?;
    }

    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;
    let memory = instance.get_memory(&mut store, "memory").ok_or("the module has a memory")?;
    for (word, number) in memory.data_mut(&mut store).chunks_exact_mut(4).zip(1_u32..=1000) {
        word.copy_from_slice(&number.to_le_bytes());
    }
    let sum = instance.get_typed_func::<i32, i32>(&mut store, "sum")?;
    writeln!(out, "1 + 2 + … + 1000 = {}", sum.call(&mut store, 1000)?)?;
    Ok(())
}
