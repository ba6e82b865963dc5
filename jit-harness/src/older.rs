//! Opcodes that Cranelift had once, and what is written today.

/// What has another name, or is written with other instructions, today.
const RENAMED: &[(&str, &[&str])] = &[
    ("band_not", &["bnot", "band"]),
    ("bconst", &["iconst"]),
    ("bextend", &["sextend"]),
    ("bint", &["uextend"]),
    ("bor_not", &["bnot", "bor"]),
    ("br_icmp", &["icmp", "brif"]),
    ("breduce", &["ireduce"]),
    ("brff", &["fcmp", "brif"]),
    ("brnz", &["brif"]),
    ("brz", &["brif"]),
    ("bxor_not", &["bnot", "bxor"]),
    ("dynamic_stack_load", &["dynamic_stack_addr", "load"]),
    ("dynamic_stack_store", &["dynamic_stack_addr", "store"]),
    ("fallthrough", &["jump"]),
    ("fcvt_low_from_sint", &["swiden_low", "fcvt_from_sint"]),
    ("ffcmp", &["fcmp"]),
    ("fmax_pseudo", &["fcmp", "select"]),
    ("fmin_pseudo", &["fcmp", "select"]),
    ("global_value", &["load"]),
    ("heap_addr", &["icmp", "trapz", "iadd"]),
    ("heap_load", &["icmp", "trapz", "iadd", "load"]),
    ("heap_store", &["icmp", "trapz", "iadd", "store"]),
    ("iadd_carry", &["uadd_overflow_cin"]),
    ("iadd_cin", &["uadd_overflow_cin"]),
    ("iadd_cout", &["uadd_overflow"]),
    ("iadd_ifcout", &["uadd_overflow"]),
    ("ifcmp", &["icmp"]),
    ("indirect_jump_table_br", &["br_table"]),
    ("irsub_imm", &["iconst", "isub"]),
    ("is_invalid", &["iconst", "icmp"]),
    ("is_null", &["iconst", "icmp"]),
    ("isub_bin", &["usub_overflow_bin"]),
    ("isub_borrow", &["usub_overflow_bin"]),
    ("isub_bout", &["usub_overflow"]),
    ("isub_ifbout", &["usub_overflow"]),
    ("load_complex", &["iadd", "load"]),
    ("null", &["iconst"]),
    ("raw_bitcast", &["bitcast"]),
    ("resumable_trap", &["trap"]),
    ("resumable_trapnz", &["trapnz"]),
    ("selectif", &["icmp", "select"]),
    ("selectif_spectre_guard", &["icmp", "select_spectre_guard"]),
    ("stack_load", &["stack_addr", "load"]),
    ("stack_store", &["stack_addr", "store"]),
    ("store_complex", &["iadd", "store"]),
    ("table_addr", &["icmp", "trapz", "iadd"]),
    ("trapff", &["fcmp", "trapnz"]),
    ("trapif", &["icmp", "trapnz"]),
    ("trueff", &["fcmp"]),
    ("trueif", &["icmp"]),
    ("vselect", &["bitselect"]),
    ("x86_blendv", &["blendv"]),
];

/// What had a form with a constant.
const WITH_CONSTANT: &[&str] = &[
    "iadd", "imul", "udiv", "sdiv", "urem", "srem", "band", "bor", "bxor", "rotl", "rotr", "ishl", "ushr", "sshr",
    "icmp",
];

/// What is written today in the place of this opcode, if Cranelift had it once and has it no more.
pub fn spelling(opcode: &str) -> Option<Vec<&'static str>> {
    if let Some((_, today)) = RENAMED.iter().find(|(old, _)| *old == opcode) {
        return Some(today.to_vec());
    }
    let operation = opcode.strip_suffix("_imm")?;
    WITH_CONSTANT.iter().find(|known| **known == operation).map(|known| vec!["iconst", *known])
}

/// What to do about an error of the reader, if it is about such an opcode.
pub fn advice(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("Unknown opcode: '")?;
    let (opcode, _) = rest.split_once('\'')?;
    let today: Vec<String> = spelling(opcode)?.into_iter().map(|opcode| format!("`{opcode}`")).collect();
    Some(format!("`{opcode}` is of an older version of Cranelift, so write {}", today.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::Opcode;

    #[test]
    fn old_opcodes_are_gone_and_new_ones_are_there() {
        let is_known = |name: &str| name.parse::<Opcode>().is_ok();
        let with_constant = WITH_CONSTANT.iter().map(|operation| format!("{operation}_imm"));
        for old in RENAMED.iter().map(|(old, _)| (*old).to_owned()).chain(with_constant) {
            assert!(!is_known(&old), "{old}");
            let today = spelling(&old).expect("it is in a table");
            assert!(today.iter().all(|new| is_known(new)), "{old}: {today:?}");
        }
    }

    #[test]
    fn advice_is_for_old_opcodes_only() {
        let advised = advice("line 3: Unknown opcode: 'ishl_imm'");
        assert_eq!(
            advised.as_deref(),
            Some("`ishl_imm` is of an older version of Cranelift, so write `iconst` and `ishl`")
        );
        assert_eq!(advice("line 3: Unknown opcode: 'f_imm'"), None);
        assert_eq!(advice("line 3: expected type"), None);
    }
}
