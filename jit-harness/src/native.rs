//! The reference column: the same kernel in C, compiled by the system's compiler and timed in a process of its own.
//!
//! The process gets the memory from a file, restores it before each call as the harness does, and prints the shortest time
//! and the result. The kernel is in a file of its own, so that it cannot be inlined into the loop that measures.

use crate::subject::Subject;
use anyhow::{Context as _, Result, bail, ensure};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Signature, Type, types};
use loopopt::oracle::Arg;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// No vectors, which Cranelift does not make; no fused operations, which would give other results.
const FLAGS: [&str; 3] = ["-O2", "-fno-tree-vectorize", "-ffp-contract=off"];
/// Time for the calls.
const MILLISECONDS: u32 = 100;

/// A C compiler of the system.
#[derive(Debug)]
pub struct Compiler(());

impl Compiler {
    /// The compiler, if there is one.
    pub fn find() -> Option<Self> {
        let answer = Command::new("cc").arg("--version").output();
        answer.is_ok_and(|output| output.status.success()).then_some(Self(()))
    }

    /// The shortest time of the large call in nanoseconds, if the program has a C kernel.
    ///
    /// Fails if the kernel does not give what the program's reference does.
    pub fn time(&self, subject: &Subject) -> Result<Option<f64>> {
        let Some(kernel) = subject.sample.and_then(|sample| sample.c) else { return Ok(None) };
        let time = self.time_kernel(subject, kernel);
        time.map(Some).with_context(|| format!("{}: the C kernel", subject.name))
    }

    fn time_kernel(&self, subject: &Subject, kernel: &str) -> Result<f64> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        // The C library has functions of its own, `atoi` for example.
        fs::write(path("kernel.c"), format!("#define {} kernel\n{kernel}", subject.large.call.function))?;
        fs::write(path("driver.c"), driver(subject)?)?;
        fs::write(path("before"), &subject.large.memory)?;
        let mut compile = Command::new("cc");
        let output =
            compile.current_dir(folder.path()).args(FLAGS).args(["-o", "run", "kernel.c", "driver.c"]).output()?;
        ensure!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr).trim());
        let output = Command::new(path("run")).current_dir(folder.path()).output()?;
        ensure!(output.status.success(), "it ended with {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        let mut words = text.split_whitespace();
        let time = words.next().context("it printed nothing")?.parse()?;
        if let Some((values, memory)) = subject.expected(true) {
            let values: Vec<u64> = values.iter().map(bits).collect::<Result<_>>()?;
            let seen: Vec<u64> = words.map(|word| u64::from_str_radix(word, 16)).collect::<Result<_, _>>()?;
            ensure!(values == seen, "it returned {seen:x?} instead of {values:x?}");
            ensure!(memory == fs::read(path("after"))?, "it left another memory");
        }
        Ok(time)
    }
}

fn bits(value: &DataValue) -> Result<u64> {
    Ok(match value {
        DataValue::I32(value) => u64::from(value.cast_unsigned()),
        DataValue::I64(value) => value.cast_unsigned(),
        DataValue::F64(value) => value.bits(),
        other => bail!("{other} has no C type here"),
    })
}

fn c_type(ty: Type) -> Result<&'static str> {
    Ok(match ty {
        types::I32 => "int32_t",
        types::I64 => "int64_t",
        types::F64 => "double",
        other => bail!("{other} has no C type here"),
    })
}

fn c_types(signature: &Signature) -> Result<Vec<&'static str>> {
    signature.params.iter().map(|param| c_type(param.value_type)).collect()
}

fn return_type(signature: &Signature) -> Result<&'static str> {
    signature.returns.first().map_or(Ok("void"), |result| c_type(result.value_type))
}

/// The program that calls the kernel.
fn driver(subject: &Subject) -> Result<String> {
    let call = &subject.large.call;
    let function = subject.program.function(&call.function).context("the call is to a function of the program")?;
    let args: Vec<String> = call.args.iter().map(argument).collect::<Result<_>>()?;
    let invocation = format!("kernel({})", args.join(", "));
    let (call, print) = match return_type(&function.signature)? {
        "void" => (invocation, String::new()),
        ty => {
            let print = format!("uint64_t bits = 0; memcpy(&bits, &result, sizeof(result)); {PRINT_BITS}");
            (format!("{ty} result = {invocation}; last = result"), format!("{ty} result = last; {print}"))
        }
    };
    let last = match return_type(&function.signature)? {
        "void" => String::new(),
        ty => format!("{ty} last = 0;"),
    };
    let params = c_types(&function.signature)?.join(", ");
    let prototype = format!("{} kernel({params});", return_type(&function.signature)?);
    Ok(TEMPLATE
        .replace("@HOSTS@", &host_functions(function)?)
        .replace("@PROTOTYPE@", &prototype)
        .replace("@LEN@", &subject.large.memory.len().to_string())
        .replace("@LAST@", &last)
        .replace("@CALL@", &call)
        .replace("@PRINT@", &print)
        .replace("@MILLISECONDS@", &MILLISECONDS.to_string()))
}

fn argument(arg: &Arg) -> Result<String> {
    Ok(match arg {
        Arg::Memory(offset) => format!("(int64_t)(memory + {offset})"),
        Arg::Value(DataValue::F64(value)) => format!("number({:#x}ULL)", value.bits()),
        Arg::Value(DataValue::I32(value)) => format!("(int32_t){:#x}U", value.cast_unsigned()),
        Arg::Value(value) => format!("(int64_t){:#x}ULL", bits(value)?),
    })
}

/// The host functions that the program calls: each gives the wrapping sum of its arguments.
fn host_functions(function: &Function) -> Result<String> {
    let mut text = String::new();
    for data in function.dfg.ext_funcs.values() {
        let name = data.name.display(Some(&function.params)).to_string();
        let signature = &function.dfg.signatures[data.signature];
        let params = c_types(signature)?;
        let list: Vec<String> = params.iter().enumerate().map(|(index, ty)| format!("{ty} a{index}")).collect();
        let sum: Vec<String> = (0..params.len()).map(|index| format!("(uint64_t)a{index}")).collect();
        let result = return_type(signature)?;
        let body = if result == "void" { String::new() } else { format!("return ({result})({});", sum.join(" + ")) };
        let name = name.trim_start_matches('%');
        writeln!(text, "__attribute__((noinline)) {result} {name}({}) {{ {body} }}", list.join(", "))?;
    }
    Ok(text)
}

const PRINT_BITS: &str = r#"printf(" %llx", (unsigned long long)bits);"#;

const TEMPLATE: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

@HOSTS@
@PROTOTYPE@

static inline double number(uint64_t bits) {
    double result;
    memcpy(&result, &bits, sizeof(result));
    return result;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void) {
    enum { LEN = @LEN@ };
    unsigned char *before = calloc(LEN + 1, 1), *memory = aligned_alloc(64, (LEN / 64 + 1) * 64);
    FILE *file = fopen("before", "rb");
    if (!before || !memory || !file || fread(before, 1, LEN, file) != LEN)
        return 1;
    double least = 1e30, start = now();
    @LAST@
    while (now() - start < @MILLISECONDS@e6) {
        memcpy(memory, before, LEN);
        double from = now();
        @CALL@;
        double time = now() - from;
        if (time < least)
            least = time;
    }
    printf("%.0f", least);
    @PRINT@
    file = fopen("after", "wb");
    return !file || fwrite(memory, 1, LEN, file) != LEN || fclose(file);
}
"#;
