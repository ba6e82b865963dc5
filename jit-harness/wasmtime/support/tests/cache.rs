//! Code that was made with other settings is not taken for code of these.

use loopopt::{Effort, Options};
use loopopt_wasmtime_support::Settings;
use std::hash::{DefaultHasher, Hash, Hasher};
use wasmtime::{Config, Engine, ModuleVersionStrategy};

/// What Wasmtime compares before it takes precompiled code.
fn compatibility(settings: Option<&Settings>) -> u64 {
    let mut config = Config::new();
    if let Some(settings) = settings {
        let version = ModuleVersionStrategy::Custom(settings.module_version());
        config.module_version(version).expect("it is short enough");
    }
    let engine = Engine::new(&config).expect("a configuration");
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

#[test]
fn engines_are_told_apart_by_settings() {
    let quick = Settings::new(Options::effort(Effort::Quick));
    let default = compatibility(Some(&Settings::default()));
    assert_eq!(default, compatibility(Some(&Settings::default())));
    assert_ne!(default, compatibility(Some(&quick)));
    assert_ne!(default, compatibility(None));
}
