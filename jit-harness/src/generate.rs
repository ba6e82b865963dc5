//! Functions to measure the compiler with: of any size, and shaped like those of a front end.

use anyhow::Result;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, Function, InstBuilder as _, MemFlagsData, Signature, UserFuncName, Value, types,
};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};

/// How deep loops are nested.
const DEPTH: usize = 3;
/// Values that are live across the whole function, as locals of the program are.
const LOCALS: usize = 4;

/// A function of this many diamonds, one after the other: three blocks each, with arithmetic and loads, and no loop.
pub fn diamonds(count: usize, isa: &dyn TargetIsa) -> Result<Function> {
    build(isa, |maker| {
        for number in 0..count {
            maker.diamond(number);
        }
    })
}

/// A function of at least this many while loops, in nests of three: ten blocks each.
pub fn loops(count: usize, isa: &dyn TargetIsa) -> Result<Function> {
    build(isa, |maker| {
        for number in 0..count.div_ceil(DEPTH) {
            maker.nest(number, DEPTH);
        }
    })
}

struct Maker<'a> {
    builder: FunctionBuilder<'a>,
    base: Variable,
    len: Variable,
    locals: [Variable; LOCALS],
}

/// A function `(pointer, length) -> sum` with this body.
fn build(isa: &dyn TargetIsa, body: impl FnOnce(&mut Maker<'_>)) -> Result<Function> {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.extend([AbiParam::new(types::I64); 2]);
    signature.returns.push(AbiParam::new(types::I64));
    let mut function = Function::with_name_signature(UserFuncName::testcase("generated"), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let mut variable = || builder.declare_var(types::I64);
    let (base, len, locals) = (variable(), variable(), [(); LOCALS].map(|()| variable()));
    let mut maker = Maker { builder, base, len, locals };
    maker.enter();
    body(&mut maker);
    maker.leave();
    maker.builder.finalize(isa.frontend_config());
    Ok(function)
}

impl Maker<'_> {
    fn enter(&mut self) {
        let entry = self.builder.create_block();
        self.builder.append_block_params_for_function_params(entry);
        self.start(entry);
        let params = self.builder.block_params(entry).to_vec();
        self.builder.def_var(self.base, params[0]);
        self.builder.def_var(self.len, params[1]);
        for (local, number) in self.locals.into_iter().zip(0..) {
            let value = self.builder.ins().iadd_imm_s(params[1], number);
            self.builder.def_var(local, value);
        }
    }

    fn leave(&mut self) {
        let values = self.locals.map(|local| self.builder.use_var(local));
        let sum = values[1..].iter().fold(values[0], |sum, &value| self.builder.ins().iadd(sum, value));
        self.builder.ins().return_(&[sum]);
        self.builder.seal_all_blocks();
    }

    /// `while i < len { two diamonds; an inner loop; i += 1 }`
    fn nest(&mut self, number: usize, depth: usize) {
        let counter = self.builder.declare_var(types::I64);
        let zero = self.builder.ins().iconst(types::I64, 0);
        self.builder.def_var(counter, zero);
        let [header, body, latch, exit] = [(); 4].map(|()| self.builder.create_block());
        self.jump_to(header);
        let (i, len) = (self.builder.use_var(counter), self.builder.use_var(self.len));
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, i, len);
        self.builder.ins().brif(more, body, &[], exit, &[]);
        self.start(body);
        self.diamond(number + depth);
        self.diamond(number + depth + 1);
        if depth > 1 {
            self.nest(number, depth - 1);
        }
        self.jump_to(latch);
        let i = self.builder.use_var(counter);
        let next = self.builder.ins().iadd_imm_s(i, 1);
        self.builder.def_var(counter, next);
        self.builder.ins().jump(header, &[]);
        self.start(exit);
    }

    /// `if a < b { a += array[...] } else { a = (a ^ b) * 3 }`
    fn diamond(&mut self, number: usize) {
        let (a, b) = (self.locals[number % LOCALS], self.locals[(number + 1) % LOCALS]);
        let [then, other, join] = [(); 3].map(|()| self.builder.create_block());
        let (x, y) = (self.builder.use_var(a), self.builder.use_var(b));
        let less = self.builder.ins().icmp(IntCC::SignedLessThan, x, y);
        self.builder.ins().brif(less, then, &[], other, &[]);
        self.start(then);
        let loaded = self.load(number);
        let sum = self.builder.ins().iadd(x, loaded);
        self.builder.def_var(a, sum);
        self.builder.ins().jump(join, &[]);
        self.start(other);
        let mixed = self.builder.ins().bxor(x, y);
        let scaled = self.builder.ins().imul_imm_s(mixed, 3);
        self.builder.def_var(a, scaled);
        self.jump_to(join);
    }

    fn load(&mut self, number: usize) -> Value {
        let base = self.builder.use_var(self.base);
        let offset = i32::try_from(number % 64 * 8).expect("it is below 512");
        self.builder.ins().load(types::I64, MemFlagsData::trusted(), base, offset)
    }

    fn start(&mut self, block: Block) {
        self.builder.switch_to_block(block);
    }

    fn jump_to(&mut self, block: Block) {
        self.builder.ins().jump(block, &[]);
        self.start(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target;
    use cranelift_codegen::dominator_tree::DominatorTree;
    use cranelift_codegen::flowgraph::ControlFlowGraph;
    use cranelift_codegen::verify_function;
    use loopopt::analysis::cfg::loops::LoopForest;

    fn forest(function: &Function) -> LoopForest {
        let isa = target::host().expect("the host is known");
        verify_function(function, &*isa).expect("the function is valid");
        let cfg = ControlFlowGraph::with_function(function);
        LoopForest::new(function, &cfg, &DominatorTree::with_function(function, &cfg))
    }

    #[test]
    fn functions_are_of_the_size_that_was_asked_for() {
        let isa = target::host().expect("the host is known");
        let function = loops(30, &*isa).expect("it can be built");
        let forest = forest(&function);
        assert_eq!(forest.len(), 30);
        assert_eq!(forest.loops().map(|lp| forest.data(lp).depth).max(), Some(3));
        assert_eq!(function.layout.blocks().count(), 1 + 30 * 10);
    }

    #[test]
    fn diamonds_have_no_loop() {
        let isa = target::host().expect("the host is known");
        let function = diamonds(100, &*isa).expect("it can be built");
        assert!(forest(&function).is_empty());
        assert_eq!(function.layout.blocks().count(), 1 + 100 * 3);
    }
}
