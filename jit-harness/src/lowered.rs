//! Machine code, with the source location of each instruction.

use anyhow::{Result, anyhow};
use cranelift_codegen::Context;
use cranelift_codegen::Final;
use cranelift_codegen::MachSrcLoc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::TargetIsa;

/// The machine code of a function.
pub struct Lowered {
    /// Its bytes.
    pub code: Vec<u8>,
    places: Vec<MachSrcLoc<Final>>,
}

impl Lowered {
    /// Lowers a function as it is.
    pub fn new(ctx: &Context, isa: &dyn TargetIsa) -> Result<Self> {
        let func = &ctx.func;
        let plane = &mut ControlPlane::default();
        let code = isa
            .compile_function(func, &ctx.domtree, &mut Default::default(), false, plane)
            .map_err(|error| anyhow!("{}: {error}", func.name))?
            .apply_params(&func.params);
        Ok(Self { code: code.buffer.data().to_vec(), places: code.buffer.get_srclocs_sorted().to_vec() })
    }

    /// The offset of the first instruction whose source location is like this.
    pub fn first_of(&self, is: impl Fn(u32) -> bool) -> Option<u64> {
        let place = self.places.iter().find(|place| !place.loc.is_default() && is(place.loc.bits()))?;
        Some(place.start.into())
    }

    /// The source location of the instruction at an offset, if it has one.
    pub fn place_of(&self, offset: u64) -> Option<u32> {
        let after = self.places.partition_point(|place| u64::from(place.start) <= offset);
        let place = self.places[..after].last().filter(|place| offset < u64::from(place.end))?;
        (!place.loc.is_default()).then(|| place.loc.bits())
    }
}
