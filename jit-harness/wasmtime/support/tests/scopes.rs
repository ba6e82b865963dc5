//! Which settings count: those of the process on all threads, those of a thread inside of its calls.

use loopopt_wasmtime_support::{InstallError, Settings, install, with_settings, without};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use wasmtime::{Engine, Module};

/// A function with a loop that is rotated.
const LOOP: &str = r#"
(module
  (func (export "count") (param $n i32) (result i32) (local $i i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
        (local.set $i (i32.add (i32.mul (local.get $i) (i32.const 3)) (i32.const 1)))
        (br $next)))
    (local.get $i)))
"#;

/// Settings that count the functions which they have changed.
fn counting() -> (Settings, Arc<AtomicUsize>) {
    let changed = Arc::new(AtomicUsize::new(0));
    let settings = Settings::default().on_report({
        let changed = changed.clone();
        move |compiled| {
            changed.fetch_add(usize::from(compiled.defined().is_some() && compiled.report.changed), Relaxed);
        }
    });
    (settings, changed)
}

/// The code of the module, compiled on this thread.
fn compile() -> Vec<u8> {
    Module::new(&Engine::default(), LOOP).expect("a module").text().to_vec()
}

#[test]
fn the_innermost_settings_count() {
    let (of_process, by_process) = counting();
    let (of_thread, by_thread) = counting();
    let counts = || (by_process.load(Relaxed), by_thread.load(Relaxed));

    let plain = compile();
    let optimized = with_settings(&of_thread, compile).expect("the hook is free");
    assert_ne!(plain, optimized);
    assert_eq!(compile(), plain, "nothing was installed");
    assert_eq!(counts(), (0, 1));

    install(of_process).expect("nobody has installed anything");
    assert_eq!(install(Settings::default()), Err(InstallError::AlreadyInstalled));
    assert_eq!(compile(), optimized);
    assert_eq!(counts(), (1, 1));

    thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(|| [compile(), compile()]));
        for thread in threads {
            assert_eq!(thread.join().expect("it compiles"), [optimized.clone(), optimized.clone()]);
        }
    });
    assert_eq!(counts(), (7, 1));

    assert_eq!(without(compile).expect("the hook is ours"), plain);
    let nested = with_settings(&of_thread, || (without(compile), compile())).expect("the hook is ours");
    assert_eq!(nested, (Ok(plain.clone()), optimized.clone()));
    assert_eq!(counts(), (7, 2));

    // Other threads are not inside of the call.
    let elsewhere = without(|| thread::scope(|scope| scope.spawn(compile).join().expect("it compiles")));
    assert_eq!(elsewhere, Ok(optimized.clone()));

    let panics = catch_unwind(AssertUnwindSafe(|| without(|| panic!("while it compiles"))));
    assert!(panics.is_err());
    assert_eq!(compile(), optimized, "the call is over");
    assert_eq!(counts(), (9, 2));
}
