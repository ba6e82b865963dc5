//! The modes: in which ways Wasmtime can be set up to compile a module.

use anyhow::{Error, Result, bail};
use loopopt::{Options, SpectreGuards};
use loopopt_wasmtime_support::{Knowledge, Settings};
use std::fmt;
use std::str::FromStr;
use wasmtime::{Collector, Config};

/// One row of the table of settings.
struct Setting {
    name: &'static str,
    /// What it is, in a few words.
    what: &'static str,
    /// What it sets in Wasmtime.
    wasmtime: fn(&mut Config),
    /// What Wasmtime knows then that loopopt can use.
    knows: fn(&mut Knowledge),
}

/// All settings. Features of WebAssembly are on in all of them, as far as Wasmtime has them on by itself.
static SETTINGS: &[Setting] = &[
    Setting {
        name: "guard",
        what: "Wasmtime's own defaults: 4 GiB reserved for a memory, with guard pages after it, so that an access with a 32-bit \
               index needs no check",
        wasmtime: |_| {},
        knows: |_| {},
    },
    Setting {
        name: "explicit",
        what: "`memory_reservation(0)` and `memory_guard_size(0)`, the same for the GC heap: each access is checked",
        wasmtime: |config| {
            config.memory_reservation(0).memory_guard_size(0);
            config.gc_heap_reservation(0).gc_heap_guard_size(0);
        },
        knows: |knowledge| knowledge.checks_memories = true,
    },
    Setting {
        name: "trusting",
        what: "loopopt may drop Spectre guards whose conditions it proves, or tests by a branch; Wasmtime emits them",
        wasmtime: |_| {},
        knows: |knowledge| knowledge.spectre_guards = SpectreGuards::Drop,
    },
    Setting {
        name: "no-spectre",
        what: "no Spectre guards: `enable_heap_access_spectre_mitigation` and `enable_table_access_spectre_mitigation` off, so \
               that checks are traps",
        wasmtime: without_spectre_guards,
        knows: |_| {},
    },
    Setting {
        name: "memory64",
        what: "`memory_may_move(false)`: a memory stays where it is when it grows, up to what is reserved for it. Accesses to \
               64-bit memories are checked in all modes",
        wasmtime: |config| {
            config.wasm_memory64(true).memory_may_move(false);
        },
        knows: |_| {},
    },
    Setting {
        name: "epochs",
        what: "`epoch_interruption(true)`: each loop looks whether time is up",
        wasmtime: |config| {
            config.epoch_interruption(true);
        },
        knows: |_| {},
    },
    Setting {
        name: "fuel",
        what: "`consume_fuel(true)`: each instruction is counted, and each loop looks whether there is fuel left",
        wasmtime: |config| {
            config.consume_fuel(true);
        },
        knows: |_| {},
    },
    Setting {
        name: "gc",
        what: "the GC proposal with the collector that counts references; the others have the one that never collects",
        wasmtime: |config| {
            config.wasm_gc(true).collector(Collector::DeferredReferenceCounting);
        },
        knows: |_| {},
    },
];

/// The modes that `all` stands for.
const ALL: [&str; 9] = [
    "guard",
    "explicit",
    "explicit+no-spectre",
    "explicit+trusting",
    "memory64",
    "epochs",
    "fuel",
    "gc",
    "explicit+epochs+fuel+gc",
];

/// Settings that are used together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    settings: Vec<usize>,
}

impl Mode {
    /// The modes of `all`.
    pub fn all() -> Vec<Self> {
        ALL.iter().map(|name| name.parse().expect("the modes are made of settings")).collect()
    }

    /// The modes of these names, each once; all of them if there is one that is `all`.
    pub fn parse_all(names: &[String]) -> Result<Vec<Self>> {
        if names.iter().any(|name| name == "all") {
            return Ok(Self::all());
        }
        let mut modes = Vec::new();
        for name in names {
            let mode = name.parse()?;
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
        Ok(modes)
    }

    /// The settings with what they set, for documentation.
    pub fn describe() -> impl Iterator<Item = (&'static str, &'static str)> {
        SETTINGS.iter().map(|setting| (setting.name, setting.what))
    }

    /// The configuration of Wasmtime.
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config.collector(Collector::Null).shared_memory(true).relaxed_simd_deterministic(true).coredump_on_trap(true);
        self.settings().for_each(|setting| (setting.wasmtime)(&mut config));
        config
    }

    /// The options with what Wasmtime knows of `module` in this mode.
    pub fn options(&self, options: &Options, module: &[u8]) -> Options {
        let mut settings = Settings::new(options.clone()).for_module(module);
        self.settings().for_each(|setting| (setting.knows)(&mut settings.knowledge));
        settings.loopopt_options()
    }

    /// Whether this setting is one of the mode's.
    pub fn has(&self, name: &str) -> bool {
        self.settings().any(|setting| setting.name == name)
    }

    fn settings(&self) -> impl Iterator<Item = &'static Setting> {
        self.settings.iter().map(|&index| &SETTINGS[index])
    }
}

#[allow(
    unsafe_code,
    reason = "flags of Cranelift are unsafe to set because Wasmtime does not check what they mean for it"
)]
fn without_spectre_guards(config: &mut Config) {
    for flag in ["enable_heap_access_spectre_mitigation", "enable_table_access_spectre_mitigation"] {
        // SAFETY: the flags leave out guards that do nothing as long as the processor does what the program says.
        unsafe { config.cranelift_flag_set(flag, "false") };
    }
}

impl FromStr for Mode {
    type Err = Error;

    /// Settings with `+` between them.
    fn from_str(text: &str) -> Result<Self> {
        let mut settings = Vec::new();
        for name in text.split('+') {
            match SETTINGS.iter().position(|setting| setting.name == name) {
                Some(index) if settings.contains(&index) => {}
                Some(index) => settings.push(index),
                None => {
                    let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
                    bail!("unknown mode `{name}`; use `all`, or some of {} with + between", known.join(", "));
                }
            }
        }
        settings.sort_unstable();
        Ok(Self { settings })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.settings().map(|setting| setting.name).collect();
        f.write_str(&names.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_sums_of_settings() {
        let mode: Mode = "fuel+explicit+fuel".parse().expect("both exist");
        assert_eq!(mode.to_string(), "explicit+fuel");
        assert!(mode.has("fuel") && !mode.has("epochs"));
        let error = "explicit+speed".parse::<Mode>().expect_err("there is no such setting");
        assert!(error.to_string().starts_with("unknown mode `speed`"), "{error}");
    }

    #[test]
    fn every_setting_is_in_one_of_all() {
        let all = Mode::all();
        for (name, _) in Mode::describe() {
            assert!(all.iter().any(|mode| mode.has(name)), "{name}");
        }
    }

    #[test]
    fn the_same_mode_is_used_once() {
        let names = ["fuel", "guard", "fuel"].map(str::to_owned);
        assert_eq!(Mode::parse_all(&names).expect("all exist").len(), 2);
    }
}
