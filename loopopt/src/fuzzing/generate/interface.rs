//! The signatures of a program's functions and of the host functions that it calls.

use super::choices::Choices;
use super::features::{Feature, Features};
use cranelift_codegen::ir::{AbiParam, ExtFuncData, ExternalName, FuncRef, Function, Signature, Type, types};
use cranelift_codegen::isa::CallConv;

/// What all functions of a program know of each other.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) features: Features,
    /// The program's functions. With [`Feature::Memory`], the first parameter is the address of the memory image. Each
    /// calls only those after it.
    pub(super) functions: Vec<Signature>,
    pub(super) hosts: Vec<Signature>,
}

impl Interface {
    pub(super) fn draw(random: &mut Choices<'_, '_>) -> Self {
        let features = Features::draw(random);
        let count = if features.has(Feature::Functions) { 2 + random.below(2) } else { 1 };
        let mut functions: Vec<Signature> = (0..count).map(|_| function(random, features)).collect();
        if features.has(Feature::Ranges) {
            functions[0].params.extend([types::I32, types::I32, types::I64].map(AbiParam::new));
        }
        if features.ends_in_address() || features.has(Feature::Twins) {
            functions[0].params.push(AbiParam::new(types::I64));
        }
        let mut hosts: Vec<Signature> = (0..3).map(|_| host(random, features)).collect();
        // The last one throws, depending on a number, and the oracle handles that for this calling convention.
        hosts[2].params.push(AbiParam::new(types::I64));
        hosts[2].call_conv = CallConv::Tail;
        Self { features, functions, hosts }
    }

    /// The name of a function of the program, without `%`.
    pub(super) fn function_name(index: usize) -> String {
        format!("f{index}")
    }

    /// Makes a function of the program known to another.
    pub(super) fn import_function(&self, func: &mut Function, index: usize) -> FuncRef {
        import(func, &Self::function_name(index), &self.functions[index])
    }

    /// Makes a host function known to a function. The last one throws now and then.
    pub(super) fn import_host(&self, func: &mut Function, index: usize) -> FuncRef {
        let kind = if index + 1 == self.hosts.len() { "throw" } else { "h" };
        import(func, &format!("{kind}{index}"), &self.hosts[index])
    }
}

fn import(func: &mut Function, name: &str, signature: &Signature) -> FuncRef {
    let name = ExternalName::testcase(name);
    if let Some((known, _)) = func.dfg.ext_funcs.iter().find(|(_, data)| data.name == name) {
        return known;
    }
    let signature = func.import_signature(signature.clone());
    func.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
}

fn function(random: &mut Choices<'_, '_>, features: Features) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    if features.has(Feature::Memory) {
        signature.params.push(AbiParam::new(types::I64));
    }
    // An integer at least, for bounds that are not known.
    signature.params.push(AbiParam::new(random.narrow_int()));
    for _ in 0..random.below(4) {
        signature.params.push(AbiParam::new(value_type(random, features)));
    }
    for _ in 0..random.below(4) {
        signature.returns.push(AbiParam::new(value_type(random, features)));
    }
    signature
}

fn host(random: &mut Choices<'_, '_>, features: Features) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    for _ in 0..random.below(4) {
        signature.params.push(AbiParam::new(value_type(random, features)));
    }
    for _ in 0..random.below(3) {
        signature.returns.push(AbiParam::new(value_type(random, features)));
    }
    signature
}

/// A type that the features allow.
pub(super) fn value_type(random: &mut Choices<'_, '_>, features: Features) -> Type {
    match random.below(10) {
        0 if features.has(Feature::Wide) => types::I128,
        1 if features.has(Feature::Floats) => random.pick(&[types::F64, types::F32]),
        2 if features.has(Feature::Vectors) => vector_type(random),
        _ => random.narrow_int(),
    }
}

/// A vector of integers.
pub(super) fn vector_type(random: &mut Choices<'_, '_>) -> Type {
    random.pick(&[types::I32X4, types::I64X2, types::I16X8, types::I8X16])
}
