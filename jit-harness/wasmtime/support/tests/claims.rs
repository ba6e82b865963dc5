//! With `assert_claims`, what loopopt's rewrites rest on is asserted while a module runs, by traps that Wasmtime knows.

use loopopt::Options;
use loopopt_wasmtime_support::{Settings, with_settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wasmtime::{Engine, Instance, Module, Store};

/// Doubles the words of the memory, each behind a test that loopopt moves out of the loop.
const DOUBLE: &str = r#"
(module
  (memory i64 1)
  (func (export "double") (param $n i64) (local $i i64)
    (loop $next
      (i32.store (local.get $i) (i32.shl (i32.load (local.get $i)) (i32.const 1)))
      (local.set $i (i64.add (local.get $i) (i64.const 4)))
      (br_if $next (i64.lt_u (local.get $i) (local.get $n))))))
"#;

#[test]
fn assertions_are_traps_that_wasmtime_knows() {
    let claims = Arc::new(AtomicUsize::new(0));
    let mut options = Options::default();
    options.assert_claims = true;
    let settings = Settings::new(options).on_report({
        let claims = claims.clone();
        move |compiled| {
            claims.fetch_add(compiled.report.claims.values().sum::<usize>(), Relaxed);
        }
    });
    let engine = Engine::default();
    let module =
        with_settings(&settings, || Module::new(&engine, DOUBLE)).expect("the hook is ours").expect("a module");
    assert!(claims.load(Relaxed) > 0, "nothing is asserted");

    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).expect("nothing is imported");
    let double = instance.get_typed_func::<i64, ()>(&mut store, "double").expect("it is exported");
    double.call(&mut store, 1 << 16).expect("all claims hold, and no access is outside");
    let outside = double.call(&mut store, (1 << 16) + 1).expect_err("the last access is outside");
    assert_eq!(outside.downcast_ref(), Some(&wasmtime::Trap::MemoryOutOfBounds));
}
