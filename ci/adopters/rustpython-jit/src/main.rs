//! Python functions that RustPython's JIT compiles without and with loopopt.

use anyhow::{Context as _, Result, anyhow};
use measure::Table;
use rustpython_compiler_core::bytecode::{BasicBag, CodeObject, ConstantData};
use rustpython_derive::py_compile;

/// The bytecode of the function of this name.
fn function(module: CodeObject, name: &str) -> Result<CodeObject> {
    let mut codes = module.constants.iter().filter_map(|constant| match constant {
        ConstantData::Code { code } if code.obj_name == name => Some((**code).clone()),
        _ => None,
    });
    codes.next().with_context(|| format!("the module has no function {name}"))
}

/// The function of a number and its type, as this build of the JIT compiles it.
macro_rules! compiled {
    ($jit:ident, $code:expr, $result:ident) => {{
        let code = $jit::compile(&$code, &[$jit::JitType::Int], Some($jit::JitType::$result))
            .map_err(|error| anyhow!("{}: {error}", stringify!($jit)))?;
        move |argument: i64| match code.invoke(&[$jit::AbiValue::Int(argument)]) {
            Ok(Some($jit::AbiValue::$result(result))) => Ok(result),
            other => Err(format!("{other:?}")),
        }
    }};
}

/// Compiles the function with both builds, and compares them.
macro_rules! program {
    ($table:ident, $name:literal, $argument:expr, $result:ident, $expected:expr, $source:literal) => {{
        let module = py_compile!(crate_name = "rustpython_compiler_core", source = $source).decode(BasicBag);
        let code = function(module, $name)?;
        let (slow, fast) = (compiled!(without, code, $result), compiled!(with, code, $result));
        $table.compare($name, &Ok($expected), || slow($argument), || fast($argument))?;
    }};
}

fn main() -> Result<()> {
    let mut table = Table::default();
    program!(
        table,
        "sum",
        100_000,
        Int,
        (0..100_000).sum(),
        r#"
def sum(n: int) -> int:
    total = 0
    i = 0
    while i < n:
        total += i
        i += 1
    return total
"#
    );
    program!(
        table,
        "nested",
        300,
        Int,
        (0..300).map(|i| (0..i).map(|j| i - j).sum::<i64>()).sum(),
        r#"
def nested(n: int) -> int:
    total = 0
    i = 0
    while i < n:
        j = 0
        while j < i:
            total += i - j
            j += 1
        i += 1
    return total
"#
    );
    program!(
        table,
        "collatz",
        1_000,
        Int,
        (1..1_000).map(collatz_steps).sum(),
        r#"
def collatz(n: int) -> int:
    steps = 0
    start = 1
    while start < n:
        x = start
        while x != 1:
            if x & 1:
                x = x + x + x + 1
            else:
                x = x >> 1
            steps += 1
        start += 1
    return steps
"#
    );
    program!(
        table,
        "harmonic",
        20_000,
        Float,
        (1..20_000).fold(0.0, |sum, i| sum + 1.0 / f64::from(i)),
        r#"
def harmonic(n: int) -> float:
    total = 0.0
    x = 1.0
    i = 1
    while i < n:
        total += 1.0 / x
        x += 1.0
        i += 1
    return total
"#
    );
    table.finish()
}

fn collatz_steps(start: i64) -> i64 {
    let next = |&x: &i64| (x != 1).then_some(if x & 1 == 1 { 3 * x + 1 } else { x / 2 });
    std::iter::successors(Some(start), next).count() as i64 - 1
}
