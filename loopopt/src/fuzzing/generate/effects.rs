//! Instructions that do more than compute: traps and calls.

use super::features::{Feature, Shape};
use super::fill::Fill;
use super::induction::condition;
use super::interface::Interface;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, DebugTag, Inst, InstBuilder, Opcode, Signature, UserStackMapEntry, Value, types,
};

const DIVISIONS: [Opcode; 4] = [Opcode::Udiv, Opcode::Urem, Opcode::Sdiv, Opcode::Srem];

impl Fill<'_, '_, '_> {
    /// One of them, if the program has any.
    pub(super) fn effect(&mut self) {
        let features = self.features();
        match self.random.below(8) {
            0 | 1 if features.has(Feature::Traps) => self.trap(),
            2 | 3 if features.has(Feature::Partial) => self.partial(),
            4 | 5 if features.has(Feature::Hosts) => self.call_host(),
            6 if self.index + 1 < self.interface.functions.len() => self.call_function(),
            7 if features.has(Feature::SequencePoints) => {
                let inst = self.pos.ins().sequence_point();
                self.keep(inst);
                self.mark_call(inst);
            }
            _ => {}
        }
    }

    /// A trap if some value is a certain number: in one iteration, if it counts them.
    fn trap(&mut self) {
        if self.is_invariant {
            self.note(Shape::InvariantTrap);
        }
        let counted = if self.random.chance(30) { self.at_iteration() } else { None };
        if counted.is_some() {
            self.note(Shape::TrapAtIteration);
        }
        let (value, number) = counted.unwrap_or_else(|| {
            let ty = self.random.narrow_int();
            (self.any(ty), self.constant(ty))
        });
        let code = self.trap_code();
        let inst = if counted.is_some() || self.random.chance(60) {
            let equal = self.pos.ins().icmp(IntCC::Equal, value, number);
            self.pos.ins().trapnz(equal, code)
        } else if self.random.chance(50) {
            self.pos.ins().trapz(value, code)
        } else {
            let condition = condition(self.random);
            let bit = self.pos.ins().icmp(condition, value, number);
            self.pos.ins().trapz(bit, code)
        };
        self.keep(inst);
    }

    /// A counter, and one of its values, mostly one of the first.
    pub(super) fn at_iteration(&mut self) -> Option<(Value, Value)> {
        let youngest = self.known.counters.len().checked_sub(1)?;
        let counter = self.known.counters[youngest - self.random.below((youngest + 1).min(3))];
        let ty = self.pos.func.dfg.value_type(counter);
        if ty == types::I128 {
            return None;
        }
        let progress = self.progress(counter);
        let iteration = if self.random.chance(70) { 4 } else { progress.count };
        let iteration = self.random.below(iteration as usize) as i128;
        let number = progress.start.wrapping_add(progress.step.wrapping_mul(iteration));
        let number = self.pos.ins().iconst(ty, (number & (i128::MAX >> (127 - ty.bits()))) as i64);
        Some((counter, number))
    }

    /// An operation that is not defined for all operands.
    fn partial(&mut self) {
        if self.is_invariant {
            self.note(Shape::InvariantTrap);
        }
        let ty = self.random.narrow_int();
        let (a, b) = (self.any(ty), self.any(ty));
        let inst = match self.random.below(6) {
            0 if self.features().has(Feature::Floats) => {
                let float = self.random.pick(&[types::F64, types::F32]);
                let value = self.any(float);
                let ty = self.random.pick(&[types::I32, types::I64]);
                let opcode = self.random.pick(&[Opcode::FcvtToSint, Opcode::FcvtToUint]);
                self.pos.ins().Unary(opcode, ty, value).0
            }
            1 => {
                let ty = self.random.pick(&[types::I32, types::I64]);
                let (a, b, code) = (self.any(ty), self.any(ty), self.trap_code());
                let sum = self.pos.ins().uadd_overflow_trap(a, b, code);
                self.keep_value(sum);
                return;
            }
            choice => {
                let b = if choice < 5 { self.pos.ins().bor_imm_u(b, 1) } else { b };
                let opcode = self.random.pick(&DIVISIONS);
                self.pos.ins().Binary(opcode, ty, a, b).0
            }
        };
        self.keep(inst);
    }

    pub(super) fn call_host(&mut self) {
        let index = self.random.below(self.interface.hosts.len());
        let callee = self.interface.import_host(self.pos.func, index);
        let args = self.call_args(&self.interface.hosts[index].params.clone());
        let inst = if self.random.chance(15) {
            let signature = self.pos.func.dfg.ext_funcs[callee].signature;
            let address = self.pos.ins().func_addr(types::I64, callee);
            self.pos.ins().call_indirect(signature, address, &args)
        } else {
            self.pos.ins().call(callee, &args)
        };
        self.keep(inst);
        self.mark_call(inst);
    }

    /// Calls a host function that has a place for an address.
    pub(super) fn call_host_with(&mut self, address: Value) {
        let hosts = &self.interface.hosts;
        let at = |host: &Signature| host.params.iter().position(|param| param.value_type == types::I64);
        let Some((index, place)) = (0..).zip(hosts).find_map(|(index, host)| Some((index, at(host)?))) else { return };
        let callee = self.interface.import_host(self.pos.func, index);
        let mut args = self.call_args(&hosts[index].params.clone());
        args[place] = address;
        let inst = self.pos.ins().call(callee, &args);
        self.keep(inst);
        self.mark_call(inst);
    }

    fn call_function(&mut self) {
        let behind = self.interface.functions.len() - self.index - 1;
        let index = self.index + 1 + self.random.below(behind);
        let callee = self.interface.import_function(self.pos.func, index);
        let mut params = self.interface.functions[index].params.clone();
        let mut args = Vec::new();
        if self.features().has(Feature::Memory) {
            let entry = self.pos.func.layout.entry_block().expect("there is a block");
            args.push(self.pos.func.dfg.block_params(entry)[0]);
            params.remove(0);
        }
        args.extend(self.call_args(&params));
        let inst = self.pos.ins().call(callee, &args);
        self.keep(inst);
        self.mark_call(inst);
    }

    /// Arguments for these parameters.
    pub(super) fn call_args(&mut self, params: &[AbiParam]) -> Vec<Value> {
        params.iter().map(|param| self.any(param.value_type)).collect()
    }

    /// Debug tags and a stack map for a call or a `sequence_point`.
    pub(super) fn mark_call(&mut self, inst: Inst) {
        if !self.features().has(Feature::Marks) {
            return;
        }
        if self.random.chance(30) {
            let tag = DebugTag::User(self.random.below(100) as u32);
            self.pos.func.debug_tags.set(inst, [tag]);
        }
        let is_call = self.pos.func.dfg.insts[inst].opcode().is_call();
        if let (true, Some(&slot)) = (is_call, self.slots.first())
            && self.random.chance(30)
        {
            let entry = UserStackMapEntry { ty: types::I64, slot, offset: 0 };
            self.pos.func.dfg.append_user_stack_map_entry(inst, entry);
        }
    }
}

/// The name of the function that a generated program starts with.
pub(super) fn main_name() -> String {
    Interface::function_name(0)
}
