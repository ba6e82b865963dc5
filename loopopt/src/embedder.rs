//! What only the author of a compiler knows of the code that it emits: CLIF has no words for it.

use cranelift_codegen::ir::{AliasRegionData, TrapCode};
use std::fmt;
use std::ops::RangeInclusive;

/// Who writes the memory of an alias region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writers {
    /// What CLIF says: calls, atomics and fences, and stores to the region or to none.
    #[default]
    Any,
    /// Calls, and stores to the region itself. Not other threads, so no atomic and no fence lets a write of theirs be seen,
    /// and no store without a region reaches it. For what a runtime keeps for itself and moves in calls only: the base and the
    /// length of a memory that grows, say.
    Calls,
    /// Other threads, at any time: the counter of an epoch, a flag that stops the program. Loads are never moved or joined, so
    /// that a loop that looks there sees the change.
    Others,
}

/// What may become of Spectre guards: of a `select_spectre_guard` that chooses between an address and 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpectreGuards {
    /// They stay as they are.
    #[default]
    Keep,
    /// One may stand for several: what is proved loses its guard, and in the end each access of a memory that was guarded is at what a
    /// guard gives again, of its own address, and never outside of the memory, whatever branches are mispredicted. For accesses that
    /// [are checked](Embedder::is_checked), to a memory of less than 2^63 bytes; and nothing is mapped at the first 4,096 addresses. Base and length may be
    /// loaded again right at an access: its address is made of the base that is loaded there, not of one from before a call that has moved the memory. Of
    /// a length that is loaded, and may change in the function, [`never_shrinks`](Embedder::never_shrinks) has to say so. As safe as `Keep` where a guard
    /// is what keeps accesses within a memory.
    Consolidate,
    /// They may be removed. For embedders whose guards only stand for explicit checks, or who trust all code in the process. What proves a
    /// condition may be a branch that is there for that only: guards of accesses that [are checked](Embedder::is_checked) become traps.
    Drop,
}

/// What the author of a compiler knows of the code that it emits, for [`Options::embedder`](crate::Options::embedder).
///
/// Each method has a default that is safe for every compiler: `impl Embedder for X {}` says nothing. The methods are called very
/// often, so they should take nanoseconds.
///
/// The answers have to be true: a wrong answer makes wrong code.
///
/// ```
/// use cranelift_codegen::ir::AliasRegionData;
/// use loopopt::{Embedder, LoopOptimizer, Options, Writers};
/// use std::sync::Arc;
///
/// /// A compiler whose loops look at a flag that another thread sets.
/// #[derive(Debug)]
/// struct Interruptible;
///
/// impl Embedder for Interruptible {
///     fn writers(&self, region: &AliasRegionData) -> Writers {
///         match region.description.as_ref() {
///             "interrupt flag" => Writers::Others,
///             _ => Writers::Any,
///         }
///     }
/// }
///
/// let mut options = Options::default();
/// options.embedder = Arc::new(Interruptible);
/// let optimizer = LoopOptimizer::new(options);
/// ```
///
/// Where the code is made, loads of the flag get this region, and what hardly ever runs is a cold block:
///
/// ```
/// use cranelift_codegen::ir::{AbiParam, AliasRegionData, Function, InstBuilder, MemFlagsData, types};
/// use cranelift_codegen::settings;
/// use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
///
/// let isa = cranelift_native::builder()?.finish(settings::Flags::new(settings::builder()))?;
/// let (mut func, mut context) = (Function::new(), FunctionBuilderContext::new());
/// func.signature.params.push(AbiParam::new(types::I64));
/// let mut builder = FunctionBuilder::new(&mut func, &mut context);
/// let [entry, header, stop, body] = std::array::from_fn(|_| builder.create_block());
/// builder.append_block_params_for_function_params(entry);
/// builder.switch_to_block(entry);
/// let flag = builder.block_params(entry)[0];
/// builder.ins().jump(header, &[]);
///
/// builder.switch_to_block(header);
/// let region = AliasRegionData { user_id: 0, description: "interrupt flag".into() };
/// let region = builder.func.dfg.alias_regions.insert(region);
/// // Neither traps nor is it out of line; it may change, so that it is not `readonly`.
/// let flags = MemFlagsData::trusted().with_alias_region(Some(region));
/// let is_set = builder.ins().load(types::I64, flags, flag, 0);
/// builder.ins().brif(is_set, stop, &[], body, &[]);
///
/// builder.set_cold_block(stop);
/// builder.switch_to_block(stop);
/// builder.ins().return_(&[]);
///
/// builder.switch_to_block(body);
/// builder.ins().jump(header, &[]);
/// builder.seal_all_blocks();
/// builder.finalize(isa.frontend_config());
/// assert!(func.layout.is_cold(stop));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Embedder: fmt::Debug + Send + Sync {
    /// Who writes the memory of `region`. A load that a call in its loop keeps in the loop stays there whatever the answer is.
    fn writers(&self, region: &AliasRegionData) -> Writers {
        let _ = region;
        Writers::Any
    }

    /// How many instructions of a function may be executed between two polls of a loop: between two looks at what
    /// [others write](Writers::Others), or at what is loaded atomically, if all that a look can lead to is rare code. With 0, each iteration
    /// polls, as the program says. 4,096 by default: about a microsecond. A poll is never lost, and a number that counts fuel is always exact.
    fn poll_latency(&self) -> u32 {
        4096
    }

    /// Whether plain accesses to `region` that carry the trap code `code` are checked before they run, all of them: that such an
    /// access traps only if its address is a constant, or is itself the result of a `select` or `select_spectre_guard` that
    /// chose an address to trap at, or of what Cranelift's egraph pass makes of such a `select`. Then what remains once the check is proved never traps, and may leave loops. And that it does
    /// trap, with this code, at the address 0 that a `select_spectre_guard` chose.
    ///
    /// A `select` of two addresses by whether they are equal chooses nothing: `select (icmp eq p, 0), 0, p` is `p` to Cranelift's egraph pass, and the access
    /// relies on a fault wherever `p` comes from. A null check has to be a branch, a `trapz`, or a `select_spectre_guard`.
    ///
    /// True of a compiler that tests each address with `trapnz`, `brif` or a guard and flags the access all the same, as
    /// Wasmtime does for memories without guard pages. False, which is the default, if any access relies on a fault.
    fn is_checked(&self, region: &AliasRegionData, code: TrapCode) -> bool {
        let _ = (region, code);
        false
    }

    /// The least and the largest unsigned number that a load of 64 bits from `region` gives, in any function. By default that can
    /// be any number.
    ///
    /// Of the length of a memory in bytes: as many as the module declares at least and at most. With that, `length - 8` does not
    /// wrap, and what is within the memory with 32 bits is so with 64.
    ///
    /// It must hold wherever such a load may be done: of one that is `can_move`, or [never shrinks](Self::never_shrinks), also where the program does not reach
    /// it.
    fn bounds(&self, region: &AliasRegionData) -> RangeInclusive<u64> {
        let _ = region;
        0..=u64::MAX
    }

    /// How many bytes can be read and written, without a trap, from the address on that a `readonly` load of 64 bits from `region` gives. 0 by default:
    /// nothing is known.
    ///
    /// It has to hold wherever such a load may be done, and as long as the function runs, whatever is tested between it and the access; if the load is
    /// `can_move`, also where the program does not reach it.
    ///
    /// Of the base of a memory of WebAssembly: as many as the module declares at least. Then a variable at a constant address can be kept in a register in a
    /// loop that does not always reach it.
    fn dereferenceable_bytes(&self, region: &AliasRegionData) -> u64 {
        let _ = region;
        0
    }

    /// Whether what is loaded from `region`, read without sign, never gets smaller while a function runs, and may be read by a `notrap` load at any
    /// time once its address is known, as a value that is no constant, in the function as Cranelift's egraph pass leaves it. Then what is below it before a loop is below it in the loop, even if calls make it
    /// larger. True of the length of a memory of WebAssembly.
    fn never_shrinks(&self, region: &AliasRegionData) -> bool {
        let _ = region;
        false
    }

    /// What may become of a `select_spectre_guard` once its condition is proved. [`SpectreGuards::Keep`] by default: the proof is about what the
    /// program does, not about what the processor does ahead of a branch, so the guard may be what keeps a mispredicted access
    /// inside. Of accesses without a guard this says nothing (`docs/trust.md`, Speculation).
    fn spectre_guards(&self) -> SpectreGuards {
        SpectreGuards::Keep
    }

    /// Whether it is their extension that keeps addresses of `region` within what is reserved for it, also where the processor runs ahead of a
    /// branch: no guard, but pages without access as far as an extended number reaches. `false` by default.
    ///
    /// That a narrow sum does not wrap is known from branches. If one is mispredicted, the same sum in 64 bits is an address farther off. So where
    /// this is said, no extension of a function that accesses `region` becomes part of a wider sum, for what that costs: no passes but
    /// `widen_indices`, `version` and `final_values` do so. True of a memory of 32 bits with 4 GiB reserved for it, if code of several tenants runs in
    /// one process.
    fn extension_confines(&self, region: &AliasRegionData) -> bool {
        let _ = region;
        false
    }

    /// What this embedder says, for [`Options::fingerprint`](crate::Options::fingerprint): another text if it may say anything else. By default
    /// what it prints for debugging, which holds its name and its fields. Give a version if what it says is changed in its code.
    fn fingerprint(&self) -> String {
        format!("{self:?}")
    }
}

/// An embedder who knows no more than CLIF says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unknown;

impl Embedder for Unknown {}
