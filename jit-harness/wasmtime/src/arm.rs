//! A module, compiled with or without loopopt.

use crate::hook::{Compilation, Orders, compile_with};
use crate::mode::Mode;
use anyhow::{Context as _, Error, Result, anyhow, bail};
use jit_harness::schedule::Arm;
use loopopt::Options;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};
use wasmtime::{Engine, Module};

/// A program: a module as bytes, and what to call it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name of the file.
    pub name: String,
    /// The module, binary.
    pub bytes: Vec<u8>,
}

impl Program {
    /// Reads a file, binary or text.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).context("standard input")?;
            return Self::new("standard input".to_owned(), &bytes);
        }
        let name = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| name.clone())?;
        Self::new(name, &bytes)
    }

    /// A module, binary or text.
    pub fn new(name: String, bytes: &[u8]) -> Result<Self> {
        // A byte-order mark is no part of a text.
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let bytes = wat::parse_bytes(bytes).map_err(|error| anyhow!("{name}: {error}"))?.into_owned();
        Ok(Self { name, bytes })
    }
}

/// How to compile.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How Wasmtime is set up.
    pub mode: Mode,
    /// The settings of loopopt.
    pub options: Options,
    /// Whether to keep the text of functions, before and after.
    pub keep_clif: bool,
    /// By how many bytes to shift the code of functions with loops, see [`crate::placement`].
    pub shift: Option<usize>,
}

impl Setup {
    /// Code where Wasmtime puts it, and no text.
    pub fn new(mode: Mode, options: Options) -> Self {
        Self { mode, options, keep_clif: false, shift: None }
    }
}

/// A compiled module.
pub struct CompiledArm {
    /// The module.
    pub module: Module,
    /// What it is compiled for.
    pub mode: Mode,
    /// What went through the hook.
    pub compilation: Compilation,
    /// Time from WebAssembly to machine code.
    pub time: Duration,
    /// A module that traps when it is instantiated, for the same engine.
    pub trap: Module,
}

impl CompiledArm {
    /// Compiles a program, with loopopt if the arm has it.
    pub fn new(program: &Program, setup: &Setup, arm: Arm) -> Result<Self> {
        let &Setup { ref mode, ref options, keep_clif, shift } = setup;
        let options = arm.has_loopopt().then(|| mode.options(options, &program.bytes));
        let failed = |error: wasmtime::Error| in_words(&error).context(format!("{} ({mode})", program.name));
        let engine = Engine::new(&mode.config()).map_err(failed)?;
        let start = Instant::now();
        let orders = Orders { options: options.as_ref(), keep_clif, shift };
        let (module, compilation) = compile_with(orders, || Module::from_binary(&engine, &program.bytes))?;
        let time = start.elapsed();
        let module = module.map_err(failed)?;
        // A hook that is not called would make both arms the same, and all would agree.
        let seen = compilation.functions.iter().filter(|function| function.index.is_some()).count();
        if seen != module.functions().len() {
            bail!("{}: {seen} of {} functions came to the hook", program.name, module.functions().len());
        }
        let trap = Module::new(&engine, "(module (func $f unreachable) (start $f))").map_err(failed)?;
        Ok(Self { module, mode: mode.clone(), compilation, time, trap })
    }

    /// Bytes of machine code of the functions that the module defines.
    pub fn code_bytes(&self) -> usize {
        self.module.functions().map(|function| function.len).sum()
    }

    /// The name of a function by its index among those that the module defines.
    pub fn function_name(&self, index: usize) -> String {
        let function = self.module.functions().nth(index);
        let name = function.and_then(|function| function.name.map(|name| name.to_string()));
        name.unwrap_or_else(|| format!("#{index}"))
    }
}

/// An error of Wasmtime with all its causes.
pub fn in_words(error: &wasmtime::Error) -> Error {
    anyhow!("{error:#}")
}
