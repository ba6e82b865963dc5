//! [`Settings`]: how loopopt runs inside Wasmtime.

use crate::WASMTIME;
use crate::knowledge::Knowledge;
use crate::name::defined_function;
use cranelift_codegen::ir::Function;
use loopopt::{Options, Report};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// A function that loopopt has looked at.
#[derive(Debug)]
#[non_exhaustive]
pub struct Compiled<'a> {
    /// The function as it goes on to lowering.
    pub func: &'a Function,
    /// What was done to it, and what was not and why.
    pub report: &'a Report,
    /// How long that took.
    pub time: Duration,
}

impl Compiled<'_> {
    /// The number of its module and its index among the functions that the module defines, see [`defined_function`].
    pub fn defined(&self) -> Option<(u32, u32)> {
        defined_function(self.func)
    }
}

/// What is called for each function.
type Callback = dyn Fn(&Compiled<'_>) + Send + Sync;

/// How loopopt runs inside Wasmtime. Cheap to clone.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The options of loopopt. `embedder` and `lowers_directly` do not count: the first is [`knowledge`](Self::knowledge), the second is
    /// what the hook does.
    ///
    /// Fuel is counted for each thread, and for each call of [`with_settings`](crate::with_settings).
    pub options: Options,
    /// What loopopt is told of the code.
    pub knowledge: Knowledge,
    /// How many bytes the memories of one module have, as it declares.
    declared: Option<RangeInclusive<u64>>,
    on_report: Option<Arc<Callback>>,
}

impl Settings {
    /// These options, and what is known of every module in an engine that is set up in any way.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// The same for one module given as WebAssembly: its memories have as many bytes as it declares, and as [`knowledge`](Self::knowledge) says.
    ///
    /// For [`with_settings`](crate::with_settings) around the compilation of this module, and no other.
    ///
    /// ```
    /// use loopopt_wasmtime_support::{Settings, with_settings};
    /// use wasmtime::{Engine, Module};
    ///
    /// let settings = Settings::default();
    /// let wasm = wat::parse_str("(module (memory 1) (func (export \"f\") (result i32) (i32.load (i32.const 8))))")?;
    /// let engine = Engine::default();
    /// let module = with_settings(&settings.for_module(&wasm), || Module::new(&engine, &wasm))??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_module(&self, wasm: &[u8]) -> Self {
        Self { declared: Some(Knowledge::of(wasm).memory_bytes), ..self.clone() }
    }

    /// Calls `callback` for each function, trampolines included, on the thread that has compiled it, before it is lowered.
    ///
    /// ```
    /// use loopopt::Totals;
    /// use loopopt_wasmtime_support::Settings;
    /// use std::sync::{Arc, Mutex};
    ///
    /// let totals = Arc::new(Mutex::new(Totals::default()));
    /// let settings = Settings::default().on_report({
    ///     let totals = totals.clone();
    ///     move |compiled| {
    ///         if let Ok(mut totals) = totals.lock() {
    ///             totals.add(compiled.report);
    ///         }
    ///     }
    /// });
    /// ```
    pub fn on_report(self, callback: impl Fn(&Compiled<'_>) + Send + Sync + 'static) -> Self {
        Self { on_report: Some(Arc::new(callback)), ..self }
    }

    /// The options with what is known, for a `LoopOptimizer` that runs in a [`Pass`](crate::Pass) of one's own.
    pub fn loopopt_options(&self) -> Options {
        let mut options = self.options.clone();
        options.embedder = Arc::new(self.all_knowledge());
        options.lowers_directly = true;
        options
    }

    /// The same for a pass whose reports go nowhere but to [`on_report`](Self::on_report).
    pub(crate) fn options_of_pass(&self) -> Options {
        let mut options = self.loopopt_options();
        options.refusals &= self.on_report.is_some();
        options
    }

    /// What code depends on, as text: the versions, all options, and what is known.
    pub fn fingerprint(&self) -> String {
        self.loopopt_options().fingerprint()
    }

    /// For `Config::module_version`, so that Wasmtime's cache and `Module::deserialize` tell code made with these settings from other code.
    ///
    /// What [`for_module`](Self::for_module) reads in a module is not in it: caches have the module in their keys. `memory_bytes` of
    /// [`knowledge`](Self::knowledge) is in it, which says more than the module does.
    ///
    /// ```
    /// use loopopt_wasmtime_support::Settings;
    /// use wasmtime::{Config, ModuleVersionStrategy};
    ///
    /// let mut config = Config::new();
    /// config.module_version(ModuleVersionStrategy::Custom(Settings::default().module_version()))?;
    /// # Ok::<(), wasmtime::Error>(())
    /// ```
    pub fn module_version(&self) -> String {
        let of_any = Self { declared: None, ..self.clone() };
        let mut hasher = DefaultHasher::new();
        of_any.fingerprint().hash(&mut hasher);
        format!("{WASMTIME} loopopt {:016x}", hasher.finish())
    }

    /// What is known of every module, and of this one.
    fn all_knowledge(&self) -> Knowledge {
        let mut knowledge = self.knowledge.clone();
        if let Some(declared) = &self.declared {
            let (least, most) = knowledge.memory_bytes.into_inner();
            let both = least.max(*declared.start())..=most.min(*declared.end());
            // What is said may be of no such module.
            knowledge.memory_bytes = if both.is_empty() { declared.clone() } else { both };
        }
        knowledge
    }

    /// Tells of a function, if somebody wants to know.
    pub(crate) fn report(&self, compiled: &Compiled<'_>) {
        if let Some(callback) = &self.on_report {
            callback(compiled);
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, knowledge, declared, on_report } = self;
        let on_report = on_report.as_ref().map(|_| "a function");
        let mut f = f.debug_struct("Settings");
        f.field("options", options).field("knowledge", knowledge).field("declared", declared);
        f.field("on_report", &on_report).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopopt::{Effort, SpectreGuards};

    #[test]
    fn the_version_is_that_of_the_code() {
        let version = Settings::default().module_version();
        assert!(version.len() <= 255, "Wasmtime takes no more");
        assert_eq!(version, Settings::default().on_report(|_| ()).module_version());

        let module = wat::parse_str("(module (memory 1))").expect("a module");
        let of_module = Settings::default().for_module(&module);
        assert_eq!(version, of_module.module_version());
        assert_ne!(Settings::default().fingerprint(), of_module.fingerprint());

        // What a program says of all modules is in no module.
        let mut larger = Settings::default();
        larger.knowledge.memory_bytes = 1 << 20..=u64::MAX;
        assert_ne!(version, larger.module_version());
        let of_module = larger.for_module(&module);
        assert_eq!(larger.module_version(), of_module.module_version());
        assert_eq!(of_module.all_knowledge().memory_bytes, 1 << 20..=1 << 32);

        assert_ne!(version, Settings::new(Options::effort(Effort::Quick)).module_version());
        let mut drops = Settings::default();
        drops.knowledge.spectre_guards = SpectreGuards::Drop;
        assert_ne!(version, drops.module_version());
    }
}
