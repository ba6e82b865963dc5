//! Machine code: its instructions, and the loops that they make.
//!
//! Code is decoded along its control flow, from the first instruction on: jump tables and constants lie between and after
//! instructions, and are not reached. A loop is natural: it has a back edge to a head that dominates the edge, and
//! consists of what reaches the back edge without passing the head. Loops are found in the code and not taken from CLIF,
//! because the question is what was emitted.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A loop of machine code.
#[derive(Clone, Debug)]
pub struct EmittedLoop {
    /// The offset of the first instruction that an iteration runs.
    pub head: u64,
    /// The offsets of its instructions, in the order of the code. Those of inner loops are among them.
    pub offsets: BTreeSet<u64>,
    /// How many instructions there are.
    pub insts: usize,
    /// How many of them are jumps.
    pub jumps: usize,
    /// How many of the jumps have a condition.
    pub conditional_jumps: usize,
    /// How many instructions read memory.
    pub loads: usize,
    /// How many instructions write memory.
    pub stores: usize,
    /// How many instructions read or write the stack frame: spilled values, and stack slots of the program. Calls and
    /// pushes, which write there without naming an address, are not among them.
    pub stack_accesses: usize,
    /// Whether there is no inner loop.
    pub is_innermost: bool,
    /// Whether nothing else lies between the first and the last of its instructions.
    pub is_contiguous: bool,
    /// Whether its last instruction is a conditional jump to the head, and no jump in it is unconditional.
    pub ends_in_conditional_jump_to_header: bool,
}

/// The innermost loops of a function, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InnermostLoops {
    /// How many instructions there are.
    pub insts: usize,
    /// How many of them read or write the stack frame.
    pub stack_accesses: usize,
}

impl InnermostLoops {
    /// Counts those of some machine code.
    pub fn of(code: &[u8]) -> Self {
        loops(code).iter().filter(|lp| lp.is_innermost).fold(Self::default(), |sum, lp| Self {
            insts: sum.insts + lp.insts,
            stack_accesses: sum.stack_accesses + lp.stack_accesses,
        })
    }
}

/// The loops of a function's machine code, in the order of their heads.
pub fn loops(code: &[u8]) -> Vec<EmittedLoop> {
    Flow::new(code).loops()
}

/// Instructions and where control goes from each of them.
#[derive(Debug, Default)]
pub struct Flow {
    /// The instructions that can be reached, by offset.
    pub insts: BTreeMap<u64, Instruction>,
    successors: HashMap<u64, Vec<u64>>,
    predecessors: HashMap<u64, Vec<u64>>,
}

impl Flow {
    /// Decodes what can be reached from the start of the code.
    pub fn new(code: &[u8]) -> Self {
        let mut flow = Self::default();
        let mut todo = vec![0];
        while let Some(offset) = todo.pop() {
            if flow.insts.contains_key(&offset) || offset >= code.len() as u64 {
                continue;
            }
            let inst = decode(code, offset);
            let next = successors(code, &inst);
            for &target in &next {
                flow.predecessors.entry(target).or_default().push(offset);
            }
            todo.extend(&next);
            flow.insts.insert(offset, inst);
            flow.successors.insert(offset, next);
        }
        flow
    }

    /// The targets of jumps.
    pub fn targets(&self) -> BTreeSet<u64> {
        let jumps = self.insts.iter().filter(|(_, inst)| is_jump(inst));
        let targets = jumps.flat_map(|(offset, inst)| {
            let falls_through = inst.flow_control() == FlowControl::ConditionalBranch;
            self.successors[offset].iter().skip(usize::from(falls_through))
        });
        targets.copied().collect()
    }

    /// The loops, in the order of their heads.
    pub fn loops(&self) -> Vec<EmittedLoop> {
        let bodies = self.bodies();
        let heads: HashSet<u64> = bodies.iter().map(|(head, _)| *head).collect();
        let is_innermost =
            |head: u64, body: &BTreeSet<u64>| !body.iter().any(|offset| *offset != head && heads.contains(offset));
        bodies.iter().map(|(head, body)| self.describe(*head, body, is_innermost(*head, body))).collect()
    }

    /// How many of these instructions read or write the stack frame.
    pub fn stack_accesses<'a>(&self, offsets: impl Iterator<Item = &'a u64>) -> usize {
        let mut factory = InstructionInfoFactory::new();
        offsets.map(|offset| accesses(&mut factory, &self.insts[offset])).filter(|accesses| accesses.of_stack).count()
    }

    /// How many conditional jumps of a loop are checks: one edge from them leaves the loop and never reaches a return, only
    /// to traps, perhaps by a call.
    pub fn checks(&self, lp: &EmittedLoop) -> usize {
        let jumps = lp.offsets.iter().filter(|offset| is_conditional(&self.insts[offset]));
        jumps.filter(|offset| self.successors[offset].iter().any(|&next| self.fails(lp, next))).count()
    }

    /// Whether what runs from here on is outside of the loop and never returns.
    fn fails(&self, lp: &EmittedLoop, start: u64) -> bool {
        let mut seen = BTreeSet::new();
        let mut todo = vec![start];
        while let Some(offset) = todo.pop() {
            let Some(inst) = self.insts.get(&offset) else { return false };
            if lp.offsets.contains(&offset) || inst.flow_control() == FlowControl::Return {
                return false;
            }
            if seen.insert(offset) {
                todo.extend(&self.successors[&offset]);
            }
        }
        true
    }

    /// The heads of all natural loops with the instructions of each.
    fn bodies(&self) -> Vec<(u64, BTreeSet<u64>)> {
        let dominators = Dominators::new(self);
        let mut bodies = Vec::new();
        for &head in &self.targets() {
            let is_back_edge = |from: &u64| dominators.dominates(head, *from);
            let back_edges: Vec<u64> = self.predecessors[&head].iter().copied().filter(is_back_edge).collect();
            if !back_edges.is_empty() {
                bodies.push((head, self.body(head, back_edges)));
            }
        }
        bodies
    }

    /// The instructions in reverse postorder.
    fn reverse_postorder(&self) -> Vec<u64> {
        let mut order = Vec::with_capacity(self.insts.len());
        let mut seen = HashSet::from([0]);
        let mut stack: Vec<(u64, usize)> = self.insts.keys().take(1).map(|&first| (first, 0)).collect();
        while let Some((offset, next)) = stack.last_mut() {
            match self.successors.get(offset).and_then(|successors| successors.get(*next)) {
                Some(&successor) => {
                    *next += 1;
                    if self.insts.contains_key(&successor) && seen.insert(successor) {
                        stack.push((successor, 0));
                    }
                }
                None => {
                    order.push(*offset);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// The head, and what reaches a back edge without passing it.
    fn body(&self, head: u64, back_edges: Vec<u64>) -> BTreeSet<u64> {
        let mut body = BTreeSet::from([head]);
        let mut todo = back_edges;
        while let Some(offset) = todo.pop() {
            if body.insert(offset) {
                todo.extend(self.predecessors.get(&offset).into_iter().flatten());
            }
        }
        body
    }

    fn describe(&self, head: u64, body: &BTreeSet<u64>, is_innermost: bool) -> EmittedLoop {
        let insts: Vec<&Instruction> = body.iter().map(|offset| &self.insts[offset]).collect();
        let jumps = insts.iter().filter(|inst| is_jump(inst)).count();
        let conditional_jumps = insts.iter().filter(|inst| is_conditional(inst)).count();
        let last = insts.last().expect("a loop has a head");
        let mut lp = EmittedLoop {
            head,
            offsets: body.clone(),
            insts: insts.len(),
            jumps,
            conditional_jumps,
            loads: 0,
            stores: 0,
            stack_accesses: 0,
            is_innermost,
            is_contiguous: insts.windows(2).all(|pair| pair[0].next_ip() == pair[1].ip()),
            ends_in_conditional_jump_to_header: is_conditional(last)
                && last.near_branch_target() == head
                && jumps == conditional_jumps,
        };
        count_accesses(&insts, &mut lp);
        lp
    }
}

fn count_accesses(insts: &[&Instruction], lp: &mut EmittedLoop) {
    let mut factory = InstructionInfoFactory::new();
    for inst in insts {
        let Accesses { is_load, is_store, of_stack } = accesses(&mut factory, inst);
        lp.loads += usize::from(is_load);
        lp.stores += usize::from(is_store);
        lp.stack_accesses += usize::from(of_stack);
    }
}

/// What an instruction does to memory.
struct Accesses {
    is_load: bool,
    is_store: bool,
    /// Whether the memory is the stack frame.
    of_stack: bool,
}

fn accesses(factory: &mut InstructionInfoFactory, inst: &Instruction) -> Accesses {
    let memory = factory.info(inst).used_memory();
    let has = |kinds: &[OpAccess]| memory.iter().any(|used| kinds.contains(&used.access()));
    let is_load = has(&[OpAccess::Read, OpAccess::CondRead, OpAccess::ReadWrite, OpAccess::ReadCondWrite]);
    let is_store = has(&[OpAccess::Write, OpAccess::CondWrite, OpAccess::ReadWrite, OpAccess::ReadCondWrite]);
    Accesses { is_load, is_store, of_stack: names_frame(inst) && (is_load || is_store) }
}

/// Whether an operand is an address in the stack frame. Cranelift uses both registers for nothing else.
fn names_frame(inst: &Instruction) -> bool {
    inst.op_kinds().any(|kind| kind == OpKind::Memory) && matches!(inst.memory_base(), Register::RSP | Register::RBP)
}

fn decode(code: &[u8], offset: u64) -> Instruction {
    let start = usize::try_from(offset).expect("code is in memory");
    Decoder::with_ip(64, &code[start..], offset, DecoderOptions::NONE).decode()
}

/// Whether this is a jump, with or without a condition, to wherever.
pub fn is_jump(inst: &Instruction) -> bool {
    matches!(
        inst.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
    )
}

fn is_conditional(inst: &Instruction) -> bool {
    inst.flow_control() == FlowControl::ConditionalBranch
}

/// Where control can go. For conditional jumps, the next instruction comes first.
fn successors(code: &[u8], inst: &Instruction) -> Vec<u64> {
    match inst.flow_control() {
        FlowControl::ConditionalBranch => vec![inst.next_ip(), inst.near_branch_target()],
        FlowControl::UnconditionalBranch => vec![inst.near_branch_target()],
        FlowControl::IndirectBranch => jump_table(code, inst),
        FlowControl::Return | FlowControl::Exception | FlowControl::Interrupt => Vec::new(),
        _ if inst.code() == Code::INVALID => Vec::new(),
        _ => vec![inst.next_ip()],
    }
}

/// The targets of a jump through a table. Cranelift places the table after the jump: offsets of 32 bits from its start. It
/// ends where the first of its targets begins, or where an entry does not lead into the code.
fn jump_table(code: &[u8], inst: &Instruction) -> Vec<u64> {
    if inst.op0_kind() != OpKind::Register {
        return Vec::new();
    }
    let start = inst.next_ip();
    let mut targets = Vec::new();
    let mut end = code.len() as u64;
    let mut at = start;
    while at + 4 <= end {
        let place = usize::try_from(at).expect("code is in memory");
        let entry = code[place..].first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        let target = start.wrapping_add_signed(entry.into());
        if target >= code.len() as u64 {
            break;
        }
        if target > start {
            end = end.min(target);
        }
        targets.push(target);
        at += 4;
    }
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Which instructions come before others on all paths (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001).
struct Dominators {
    /// For each instruction, its place in reverse postorder.
    places: HashMap<u64, usize>,
    /// For each place, that of the last instruction before it on all paths. The first is its own.
    immediate: Vec<usize>,
}

impl Dominators {
    fn new(flow: &Flow) -> Self {
        let order = flow.reverse_postorder();
        let places: HashMap<u64, usize> = order.iter().enumerate().map(|(place, &offset)| (offset, place)).collect();
        let mut immediate: Vec<Option<usize>> = vec![None; order.len()];
        if let Some(first) = immediate.first_mut() {
            *first = Some(0);
        }
        let mut is_changing = true;
        while is_changing {
            is_changing = false;
            for (place, offset) in order.iter().enumerate().skip(1) {
                let before = flow.predecessors.get(offset).into_iter().flatten().map(|from| places[from]);
                let known = before.filter(|&from| immediate[from].is_some());
                let common = known.reduce(|a, b| common_dominator(&immediate, a, b));
                is_changing |= immediate[place] != common;
                immediate[place] = common;
            }
        }
        Self { places, immediate: immediate.into_iter().flatten().collect() }
    }

    /// Whether all paths to `after` pass `before`, or both are one.
    fn dominates(&self, before: u64, after: u64) -> bool {
        let (Some(&before), Some(&after)) = (self.places.get(&before), self.places.get(&after)) else { return false };
        let mut at = after;
        while at > before {
            at = self.immediate[at];
        }
        at == before
    }
}

/// The last place that dominates both.
fn common_dominator(immediate: &[Option<usize>], mut a: usize, mut b: usize) -> usize {
    while a != b {
        let later = if a > b { &mut a } else { &mut b };
        *later = immediate[*later].expect("those before it are known");
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `xor eax, eax; head: add rax, [rdi]; add rdi, 8; cmp rdi, rsi; jb head; ret`
    const BOTTOM_TESTED: &[u8] =
        &[0x31, 0xC0, 0x48, 0x03, 0x07, 0x48, 0x83, 0xC7, 0x08, 0x48, 0x39, 0xF7, 0x72, 0xF4, 0xC3];

    /// `head: cmp rdi, rsi; jae out; add [rsp], rdi; add rdi, 8; jmp head; out: ret`
    const TOP_TESTED: &[u8] =
        &[0x48, 0x39, 0xF7, 0x73, 0x0A, 0x48, 0x01, 0x3C, 0x24, 0x48, 0x83, 0xC7, 0x08, 0xEB, 0xF1, 0xC3];

    /// `outer: inner: dec rdi; jne inner; dec rsi; jne outer; ret` with an own head for the outer loop.
    const NESTED: &[u8] = &[0x48, 0x89, 0xD7, 0x48, 0xFF, 0xCF, 0x75, 0xFB, 0x48, 0xFF, 0xCE, 0x75, 0xF3, 0xC3];

    /// `jmp rax` with a table of two entries, `0: dec rdi; jne 0` and `1: ret`.
    const TABLE: &[u8] = &[0xFF, 0xE0, 8, 0, 0, 0, 13, 0, 0, 0, 0x48, 0xFF, 0xCF, 0x75, 0xFB, 0xC3];

    #[test]
    fn a_bottom_tested_loop_has_one_jump() {
        let found = loops(BOTTOM_TESTED);
        let [lp] = &found[..] else { panic!("{found:?}") };
        assert_eq!((lp.head, lp.insts, lp.jumps, lp.conditional_jumps), (2, 4, 1, 1));
        assert_eq!((lp.loads, lp.stores, lp.stack_accesses), (1, 0, 0));
        assert!(lp.ends_in_conditional_jump_to_header && lp.is_innermost && lp.is_contiguous);
    }

    #[test]
    fn a_top_tested_loop_has_two_jumps() {
        let found = loops(TOP_TESTED);
        let [lp] = &found[..] else { panic!("{found:?}") };
        assert_eq!((lp.head, lp.insts, lp.jumps, lp.conditional_jumps), (0, 5, 2, 1));
        assert_eq!((lp.loads, lp.stores, lp.stack_accesses), (1, 1, 1));
        assert!(!lp.ends_in_conditional_jump_to_header && lp.is_contiguous);
    }

    #[test]
    fn jumps_to_traps_are_checks() {
        // head: cmp rdi, rsi; jae trap; dec rdi; je out; dec rsi; jne head; out: ret; trap: ud2
        let code = [
            0x48, 0x39, 0xF7, 0x73, 0x0B, 0x48, 0xFF, 0xCF, 0x74, 0x05, 0x48, 0xFF, 0xCE, 0x75, 0xF1, 0xC3, 0x0F, 0x0B,
        ];
        let flow = Flow::new(&code);
        let found = flow.loops();
        assert_eq!((found.len(), found[0].conditional_jumps, flow.checks(&found[0])), (1, 3, 1));
        let flow = Flow::new(BOTTOM_TESTED);
        assert_eq!(flow.checks(&flow.loops()[0]), 0);
    }

    #[test]
    fn only_named_addresses_are_stack_accesses() {
        // head: push rax; pop rax; call head; lea rax, [rsp + 8]; mov rax, [rsp + 8]; dec rdi; jne head; ret
        let code = [
            0x50, 0x58, 0xE8, 0xF9, 0xFF, 0xFF, 0xFF, 0x48, 0x8D, 0x44, 0x24, 0x08, 0x48, 0x8B, 0x44, 0x24, 0x08, 0x48,
            0xFF, 0xCF, 0x75, 0xEA, 0xC3,
        ];
        assert_eq!(InnermostLoops::of(&code), InnermostLoops { insts: 7, stack_accesses: 1 });
    }

    #[test]
    fn loops_nest() {
        let found = loops(NESTED);
        let summary: Vec<_> = found.iter().map(|lp| (lp.head, lp.insts, lp.is_innermost)).collect();
        assert_eq!(summary, [(0, 5, false), (3, 2, true)]);
    }

    #[test]
    fn jump_tables_are_followed_and_not_decoded() {
        let flow = Flow::new(TABLE);
        assert_eq!(flow.insts.keys().copied().collect::<Vec<_>>(), [0, 10, 13, 15]);
        assert_eq!(flow.loops().len(), 1);
    }

    #[test]
    fn code_without_loops_has_none() {
        assert!(loops(&[0xC3]).is_empty());
        assert!(loops(&[]).is_empty());
    }
}
