//! Which pass runs on which thread. Cranelift knows one hook, which asks here.

use crate::error::InstallError;
use crate::loops::Loops;
use crate::settings::Settings;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context, MidEndHook, set_mid_end_hook};
use std::cell::RefCell;
use std::hash::Hasher;
use std::rc::Rc;
use std::sync::OnceLock;

/// A pass that runs at the end of Cranelift's mid-end, on one thread: see `cranelift_codegen::MidEndHook`.
pub trait Pass {
    /// Runs it on `ctx.func`, which is fresh from the egraph pass, with a control-flow graph, a dominator tree and loops. The first two have to be
    /// right afterwards, and no value may be an alias.
    ///
    /// It is not called for a function that it optimizes itself while it runs.
    ///
    /// # Errors
    ///
    /// An error ends the compilation of the module.
    fn run(&mut self, ctx: &mut Context, isa: &dyn TargetIsa, ctrl_plane: &mut ControlPlane) -> CodegenResult<()>;

    /// Its version and all settings that code depends on, for Cranelift's incremental cache.
    fn fingerprint(&self) -> String;
}

/// A pass that this thread has. It may be running.
type OfThread = Rc<RefCell<dyn Pass>>;

/// What [`install`] was given.
static INSTALLED: OnceLock<Settings> = OnceLock::new();

thread_local! {
    /// What counts on this thread.
    static SCOPED: RefCell<Option<OfThread>> = const { RefCell::new(None) };
    /// What counts on all threads: made when this one needs it first, for an optimizer uses its memory again.
    static OF_PROCESS: RefCell<Option<OfThread>> = const { RefCell::new(None) };
}

/// Installs loopopt for all that is compiled in this process from now on, on all threads.
///
/// The settings have to be right for all engines of the process: see [`Knowledge`](crate::Knowledge).
///
/// # Errors
///
/// If loopopt is installed already, or if someone else has set Cranelift's hook.
pub fn install(settings: Settings) -> Result<(), InstallError> {
    set_hook()?;
    INSTALLED.set(settings).map_err(|_| InstallError::AlreadyInstalled)
}

/// Runs `compile`, with loopopt and these settings for all that it compiles on this thread, whatever [`install`] was given.
///
/// For one engine of several. Does nothing to what `compile` has other threads compile, see the [crate's documentation](crate).
///
/// # Errors
///
/// If someone else has set Cranelift's hook; then `compile` is not run.
pub fn with_settings<T>(settings: &Settings, compile: impl FnOnce() -> T) -> Result<T, InstallError> {
    with_pass(&Rc::new(RefCell::new(Loops::new(settings))), compile)
}

/// Runs `compile`, without loopopt for all that it compiles on this thread.
///
/// # Errors
///
/// Those of [`with_settings`].
pub fn without<T>(compile: impl FnOnce() -> T) -> Result<T, InstallError> {
    with_pass(&Rc::new(RefCell::new(Nothing)), compile)
}

/// Runs `compile`, with `pass` for all that it compiles on this thread, and nothing else there. The harness measures with it.
///
/// Calls of this, [`with_settings`] and [`without`] may be inside of each other: the innermost counts.
///
/// # Errors
///
/// Those of [`with_settings`].
pub fn with_pass<P: Pass + 'static, T>(pass: &Rc<RefCell<P>>, compile: impl FnOnce() -> T) -> Result<T, InstallError> {
    set_hook()?;
    let _scope = Scope::enter(pass.clone());
    Ok(compile())
}

/// Sets Cranelift's hook, if that was not done yet.
fn set_hook() -> Result<(), InstallError> {
    static IS_OURS: OnceLock<bool> = OnceLock::new();
    match IS_OURS.get_or_init(|| set_mid_end_hook(Box::new(Dispatch)).is_ok()) {
        true => Ok(()),
        false => Err(InstallError::HookTaken),
    }
}

/// A pass counts as long as this lives, also if what it lives for panics.
struct Scope {
    outer: Option<OfThread>,
}

impl Scope {
    fn enter(pass: OfThread) -> Self {
        Self { outer: SCOPED.replace(Some(pass)) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        SCOPED.set(self.outer.take());
    }
}

/// Code as Cranelift makes it.
struct Nothing;

impl Pass for Nothing {
    fn run(&mut self, _: &mut Context, _: &dyn TargetIsa, _: &mut ControlPlane) -> CodegenResult<()> {
        Ok(())
    }

    fn fingerprint(&self) -> String {
        String::new()
    }
}

/// The hook: does what this thread's pass does.
struct Dispatch;

impl MidEndHook for Dispatch {
    fn run(&self, ctx: &mut Context, isa: &dyn TargetIsa, ctrl_plane: &mut ControlPlane) -> CodegenResult<()> {
        // One that is running optimizes a function of its own.
        match current() {
            Some(pass) => pass.try_borrow_mut().map_or(Ok(()), |mut pass| pass.run(ctx, isa, ctrl_plane)),
            None => Ok(()),
        }
    }

    fn hash_settings(&self, state: &mut dyn Hasher) {
        let fingerprint = current().and_then(|pass| pass.try_borrow().map(|pass| pass.fingerprint()).ok());
        state.write(fingerprint.unwrap_or_default().as_bytes());
    }
}

/// The pass that counts on this thread now.
fn current() -> Option<OfThread> {
    SCOPED.with_borrow(Clone::clone).or_else(|| {
        let settings = INSTALLED.get()?;
        let make = || -> OfThread { Rc::new(RefCell::new(Loops::new(settings))) };
        Some(OF_PROCESS.with_borrow_mut(|pass| pass.get_or_insert_with(make).clone()))
    })
}
