//! What Wasmtime calls the functions that it compiles.

use cranelift_codegen::ir::{Function, UserFuncName};

/// Namespaces from here on are of trampolines and the like: the four high bits are the kind of a function, and 0 those of a module.
const FIRST_OTHER_KIND: u32 = 1 << 28;

/// The number of the module and the index among the functions that this module defines, if `func` is one of these and no trampoline.
///
/// A component has several modules; a module alone has the number 0.
pub fn defined_function(func: &Function) -> Option<(u32, u32)> {
    match &func.name {
        UserFuncName::User(name) if name.namespace < FIRST_OTHER_KIND => Some((name.namespace, name.index)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trampolines_are_not_defined_functions() {
        let of = |namespace, index| {
            let mut func = Function::new();
            func.name = UserFuncName::user(namespace, index);
            defined_function(&func)
        };
        assert_eq!(of(0, 7), Some((0, 7)));
        assert_eq!(of(2, 7), Some((2, 7)));
        assert_eq!(of(1 << 28, 7), None);
    }
}
