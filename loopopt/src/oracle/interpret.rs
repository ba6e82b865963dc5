//! Cranelift's interpreter, for the programs that it can run.
//!
//! It knows no memory but stack slots, no host functions, and not all instructions, and it panics at what it does not
//! know. So a program is looked through first. What passes has scalar values only, no recursion (the interpreter would
//! recurse on the Rust stack), and addresses that come from `stack_addr` and are used for nothing but accesses: what they
//! are is another matter in machine code.
//!
//! In a few things the interpreter is known to differ from machine code, and has nothing to say: `srem` of the smallest number by -1,
//! which is a trap there and 0 in machine code, and loads and stores of 128 bits.

use super::{Arg, Call, Program};
use crate::ir::all_insts;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{BlockArg, Function, Inst, InstructionData, Opcode, TrapCode, Value, types};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterError, InterpreterState};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the interpreter says about a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Interpreted {
    /// It returned.
    Returned(Vec<DataValue>),
    /// It trapped.
    Trapped(TrapCode),
    /// It took more instructions than it may.
    TimedOut,
}

/// Runs a call in Cranelift's interpreter, for at most `fuel` instructions. `None` if the interpreter cannot run it.
pub fn interpret(program: &Program, call: &Call, fuel: u64) -> Option<Interpreted> {
    let mut args = Vec::with_capacity(call.args.len());
    for arg in &call.args {
        match arg {
            Arg::Value(value) => args.push(value.clone()),
            Arg::Memory(_) => return None,
        }
    }
    let function = program.function(&call.function)?;
    super::run::require_args(call, &function.signature).ok()?;
    if !can_run(program, function, &mut Vec::new(), &mut HashSet::new()) {
        return None;
    }
    let mut store = FunctionStore::default();
    for function in program.functions() {
        store.add(function.name.to_string(), function);
    }
    let state = InterpreterState::default().with_function_store(store);
    let mut interpreter = Interpreter::new(state).with_fuel(Some(fuel));
    let name = format!("%{}", call.function);
    let result = catch_unwind(AssertUnwindSafe(|| interpreter.call_by_name(&name, &args))).ok()?;
    match result {
        Ok(ControlFlow::Trap(CraneliftTrap::User(TrapCode::INTEGER_OVERFLOW)))
            if program.functions().iter().any(may_overflow_in_srem) =>
        {
            None
        }
        Ok(ControlFlow::Return(values)) => Some(Interpreted::Returned(values.to_vec())),
        Ok(ControlFlow::Trap(CraneliftTrap::User(code))) => Some(Interpreted::Trapped(code)),
        Err(InterpreterError::FuelExhausted) => Some(Interpreted::TimedOut),
        Ok(_) | Err(_) => None,
    }
}

/// Whether the interpreter can run a function and all that it calls. `active` are the functions on the call path, `known`
/// those that it can run.
fn can_run<'p>(
    program: &'p Program,
    function: &'p Function,
    active: &mut Vec<String>,
    known: &mut HashSet<String>,
) -> bool {
    let name = function.name.to_string();
    if known.contains(&name) {
        return true;
    }
    if active.contains(&name) || !values_are_known(function) {
        return false;
    }
    active.push(name.clone());
    let tainted = stack_addresses(function);
    let insts = all_insts(function);
    let result = insts.into_iter().all(|inst| {
        is_known(function, inst)
            && uses_are_known(function, inst, &tainted)
            && callee(function, inst).is_none_or(|name| {
                program
                    .functions()
                    .iter()
                    .find(|function| function.name.to_string() == name)
                    .is_some_and(|callee| can_run(program, callee, active, known))
            })
    });
    active.pop();
    if result {
        known.insert(name);
    }
    result
}

fn values_are_known(function: &Function) -> bool {
    let known = |ty: cranelift_codegen::ir::Type| ty.is_int() || matches!(ty, types::F32 | types::F64);
    let results = |inst| function.dfg.inst_results(inst).iter();
    function.layout.blocks().all(|block| {
        function.dfg.block_params(block).iter().all(|&value| known(function.dfg.value_type(value)))
            && function.layout.block_insts(block).flat_map(results).all(|&value| known(function.dfg.value_type(value)))
    })
}

/// The name of the function that an instruction calls.
fn callee(function: &Function, inst: Inst) -> Option<String> {
    match function.dfg.insts[inst] {
        InstructionData::Call { func_ref, .. } => {
            Some(function.dfg.ext_funcs[func_ref].name.display(Some(&function.params)).to_string())
        }
        _ => None,
    }
}

/// Whether the function has an `srem` by what may be -1.
fn may_overflow_in_srem(function: &Function) -> bool {
    let dfg = &function.dfg;
    let constant = |value| match dfg.insts[dfg.value_def(dfg.resolve_aliases(value)).inst()?] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
            Some(imm.sign_extend_from_width(dfg.value_type(value).bits()).bits())
        }
        _ => None,
    };
    let mut insts = all_insts(function);
    insts.any(|inst| {
        dfg.insts[inst].opcode() == Opcode::Srem && constant(dfg.inst_args(inst)[1]).is_none_or(|divisor| divisor == -1)
    })
}

/// Whether the instruction is a load or store of 128 bits.
fn is_wide_access(function: &Function, inst: Inst) -> bool {
    let opcode = function.dfg.insts[inst].opcode();
    (opcode.can_load() || opcode.can_store()) && function.dfg.ctrl_typevar(inst) == types::I128
}

fn is_known(function: &Function, inst: Inst) -> bool {
    !is_wide_access(function, inst)
        && !matches!(
            function.dfg.insts[inst].opcode(),
            Opcode::CallIndirect
                | Opcode::ReturnCallIndirect
                | Opcode::FuncAddr
                | Opcode::TryCall
                | Opcode::TryCallIndirect
                | Opcode::GetExceptionHandlerAddress
                | Opcode::SymbolValue
                | Opcode::TlsValue
                | Opcode::DynamicStackAddr
                | Opcode::GetFramePointer
                | Opcode::GetStackPointer
                | Opcode::GetReturnAddress
                | Opcode::GetPinnedReg
                | Opcode::SetPinnedReg
                | Opcode::StackSwitch
                | Opcode::SequencePoint
                | Opcode::Debugtrap
                | Opcode::Bitcast
        )
}

/// The values that may be addresses of stack slots.
fn stack_addresses(function: &Function) -> HashSet<Value> {
    let mut tainted = HashSet::new();
    let resolve = |value| function.dfg.resolve_aliases(value);
    loop {
        let before = tainted.len();
        for inst in all_insts(function) {
            let opcode = function.dfg.insts[inst].opcode();
            let args = function.dfg.inst_args(inst);
            let makes = match opcode {
                Opcode::StackAddr => true,
                Opcode::Iadd | Opcode::Isub | Opcode::Select => args.iter().any(|&arg| tainted.contains(&resolve(arg))),
                _ => false,
            };
            if makes {
                tainted.extend(function.dfg.inst_results(inst));
            }
            for call in
                function.dfg.insts[inst].branch_destination(&function.dfg.jump_tables, &function.dfg.exception_tables)
            {
                let params = function.dfg.block_params(call.block(&function.dfg.value_lists));
                for (arg, &param) in call.args(&function.dfg.value_lists).zip(params) {
                    if let BlockArg::Value(arg) = arg
                        && tainted.contains(&resolve(arg))
                    {
                        tainted.insert(param);
                    }
                }
            }
        }
        if tainted.len() == before {
            return tainted;
        }
    }
}

/// Whether addresses are used as addresses only, and only they are.
fn uses_are_known(function: &Function, inst: Inst, tainted: &HashSet<Value>) -> bool {
    let data = &function.dfg.insts[inst];
    let is_tainted = |value: Value| tainted.contains(&function.dfg.resolve_aliases(value));
    let args = function.dfg.inst_args(inst);
    let opcode = data.opcode();
    match opcode {
        Opcode::Iadd => !(is_tainted(args[0]) && is_tainted(args[1])),
        Opcode::Isub => !is_tainted(args[1]),
        Opcode::Select => !is_tainted(args[0]),
        Opcode::Jump | Opcode::Brif | Opcode::BrTable => !args.iter().any(|&arg| is_tainted(arg)),
        _ if opcode.can_store() && !opcode.can_load() && args.len() == 2 => !is_tainted(args[0]) && is_tainted(args[1]),
        _ if opcode.can_load() && !opcode.can_store() && args.len() == 1 => is_tainted(args[0]),
        _ => !opcode.can_load() && !opcode.can_store() && !args.iter().any(|&arg| is_tainted(arg)),
    }
}
