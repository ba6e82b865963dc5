//! Links: numbers of 32 bits and less that an iteration loads, and at which the next one loads, as in lists and trees of a memory of 32 bits.

use super::features::Shape;
use super::outline::{Draft, End, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Type, Value, types};

/// Where the links are, and what they are like.
struct Links {
    /// The address of the number zero.
    base: Value,
    ty: Type,
    is_signed: bool,
    /// The numbers of the nodes. Each has two links.
    nodes: Vec<i64>,
}

/// Bytes of a slot of nodes: as many as a number of 8 bits can distinguish.
const SIZE: u32 = 256;

/// Flags of accesses to it.
const FLAGS: MemFlagsData = MemFlagsData::trusted();

impl Draft<'_, '_, '_> {
    /// A loop that follows links. Gives the block after it, if a path continues.
    pub(super) fn links(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::Link);
        let links = self.linked(at);
        let first = self.link(&links);
        let lp = self.small_loop(at, 15);
        let link = self.carry(at, lp.header, first);
        let node = self.follow(lp.header, &links, link);
        if self.random.chance(30) {
            self.pos.goto_bottom(lp.header);
            self.pos.ins().store(FLAGS, link, node, 4);
        }
        let (latch, next) = match self.random.chance(50) {
            true => self.one_of_two(lp.header, &links, (node, link)),
            false => (lp.header, self.next(lp.header, &links, node, 0)),
        };
        if self.random.chance(50) {
            self.pos.goto_bottom(latch);
            let number = self.pos.ins().uextend(types::I64, next);
            self.outline.private.push(number);
            self.absorb(latch, number);
        }
        let latch = self.some(latch, 15);
        let exit = self.end_nest(latch, &lp);
        if let Some(latch) = latch {
            self.pass(latch, lp.header, next);
        }
        exit
    }

    /// A slot of nodes of which each link is one of them.
    fn linked(&mut self, at: Block) -> Links {
        let ty = self.random.pick(&[types::I32, types::I32, types::I16, types::I8]);
        let is_signed = self.random.chance(30);
        let zero = if is_signed { i64::from(SIZE / 2) } else { 0 };
        let nodes: Vec<i64> = (0..6).map(|node| 40 * node + 8 * self.random.below(5) as i64 - zero).collect();
        let (_, slot) = self.zeroed_slot(at, SIZE);
        let base = self.pos.ins().iadd_imm_s(slot, zero);
        self.outline.private.push(base);
        let links = Links { base, ty, is_signed, nodes };
        for &node in &links.nodes {
            for field in [0, 4] {
                let link = self.link(&links);
                self.pos.ins().store(FLAGS, link, base, node as i32 + field);
            }
        }
        links
    }

    /// The number of one of the nodes.
    fn link(&mut self, links: &Links) -> Value {
        let node = self.random.pick(&links.nodes);
        let mask = u64::MAX >> (64 - links.ty.bits());
        let link = self.pos.ins().iconst(links.ty, (node as u64 & mask) as i64);
        self.outline.private.push(link);
        link
    }

    /// The address of the node of this number.
    fn follow(&mut self, at: Block, links: &Links, link: Value) -> Value {
        self.pos.goto_bottom(at);
        let wide = match links.is_signed {
            true => self.pos.ins().sextend(types::I64, link),
            false => self.pos.ins().uextend(types::I64, link),
        };
        let node = self.pos.ins().iadd(links.base, wide);
        self.outline.private.extend([link, wide, node]);
        if self.random.chance(30) {
            self.absorb(at, wide);
        }
        node
    }

    /// A link of the node at this address.
    fn next(&mut self, at: Block, links: &Links, node: Value, field: i32) -> Value {
        self.pos.goto_bottom(at);
        let next = self.pos.ins().load(links.ty, FLAGS, node, field);
        self.outline.private.push(next);
        next
    }

    /// One of the links of the node, or what it was, or a constant. Gives the block after that, too.
    fn one_of_two(&mut self, at: Block, links: &Links, (node, link): (Value, Value)) -> (Block, Value) {
        let [left, right, behind] = [(); 3].map(|()| self.block());
        self.finish(at, End::Branch(On::Data, [Successor::to(left), Successor::to(right)]));
        let first = self.next(left, links, node, 0);
        let second = match self.random.below(4) {
            0 => link,
            1 => {
                self.pos.goto_bottom(right);
                self.link(links)
            }
            _ => self.next(right, links, node, 4),
        };
        let next = self.pos.func.dfg.append_block_param(behind, links.ty);
        self.outline.private.push(next);
        for (successor, value) in [(left, first), (right, second)] {
            self.finish(successor, End::Jump(Successor { block: behind, args: vec![Some(BlockArg::Value(value))] }));
        }
        (behind, next)
    }
}
