//! Objects in memory that say how long an array is, and where: a loop loads both in each iteration, and fills the array, which may hold the object itself.
//!
//! All elements that are stored are places of arrays, so that an object that was overwritten has one. A number of 32 bits is one from the image on.

use super::features::Shape;
use super::memory::{IMAGE, STAGE};
use super::outline::{Draft, End, On, Successor};
use super::pointers::Small;
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, TrapCode, Type, Value, types};

/// Where objects are after the image, some of them 8 bytes further.
const OBJECT: i64 = 96;

/// What the third field of an object holds.
const TAG: i64 = 77;

/// An object with a count, a pointer, a tag and a sum.
struct Object {
    base: Value,
    /// Of its fields, and of elements.
    ty: Type,
    flags: MemFlagsData,
}

impl Draft<'_, '_, '_> {
    /// A loop that fills what an object points to, maybe in another loop. Gives the block after it, if a path continues.
    pub(super) fn object(&mut self, at: Block) -> Option<Block> {
        self.note(Shape::Object);
        let object = self.new_object(at);
        let places = [self.array_of(at, &object), self.array_of(at, &object)];
        let count = self.random.below(9) as i64;
        self.pos.goto_bottom(at);
        for (field, number) in [(0, count), (2, TAG), (3, 0)] {
            let number = self.pos.ins().iconst(object.ty, number);
            self.store_field(&object, field, number);
        }
        self.store_field(&object, 1, places[0]);
        let nest = self.small_nest(at);
        let (header, counter) = (nest.inner.header, self.up_or_down(&nest.inner, 7));
        let exit = self.block();
        let is_early = self.random.chance(50);
        let body = if is_early { self.counted(header, &object, (&nest.inner, exit)) } else { header };
        if self.random.chance(30) {
            self.check_tag(body, &object);
        }
        self.fill(body, &object, (counter, places));
        let latch = if is_early { body } else { self.counted(body, &object, (&nest.inner, exit)) };
        // Nothing else comes into the loop: it could be another object at this place.
        let behind = self.end_small_loop(latch, &nest.inner);
        self.finish(behind, End::Jump(Successor::to(exit)));
        self.tell(exit, &object, places[0]);
        self.end_around(Some(exit), &nest)
    }

    fn new_object(&mut self, at: Block) -> Object {
        let ty = self.random.pick(&[types::I64, types::I64, types::I32]);
        let number = self.small_number(at, 2);
        let base = self.element(at, IMAGE as i64 + OBJECT, number, 8);
        let flags = self.stage_flags(11);
        let flags = if self.random.chance(30) { flags.with_can_move() } else { flags };
        Object { base, ty, flags }
    }

    /// Where an array begins that ends before the sum of all.
    fn array_of(&mut self, at: Block, object: &Object) -> Value {
        let size = i64::from(object.ty.bytes());
        let room = STAGE as i64 - 24 - 8 * size;
        let near = OBJECT - 8 * size;
        let start = match self.random.below(3) {
            0 => near + size * self.random.below(14) as i64,
            1 => near - size,
            _ => size * self.random.below((room / size) as usize) as i64,
        };
        let start = IMAGE as i64 + start.clamp(0, room);
        self.pos.goto_bottom(at);
        let place = match object.ty == types::I64 {
            true => {
                let image = self.image();
                self.pos.ins().iadd_imm_s(image, start)
            }
            false => self.pos.ins().iconst(types::I32, start),
        };
        self.outline.private.push(place);
        place
    }

    fn store_field(&mut self, object: &Object, field: i32, value: Value) {
        self.pos.ins().store(object.flags, value, object.base, field * object.ty.bytes() as i32);
    }

    fn load_field(&mut self, object: &Object, field: i32) -> Value {
        let value = self.pos.ins().load(object.ty, object.flags, object.base, field * object.ty.bytes() as i32);
        self.outline.private.push(value);
        value
    }

    /// Leaves the loop for `exit` unless the object counts further. Gives the block where the loop goes on.
    fn counted(&mut self, at: Block, object: &Object, (lp, exit): (&Small, Block)) -> Block {
        self.pos.goto_bottom(at);
        let count = self.load_field(object, 0);
        let wide = if object.ty == types::I64 { count } else { self.pos.ins().uextend(types::I64, count) };
        let stays = self.pos.ins().icmp(IntCC::UnsignedLessThan, lp.counter, wide);
        self.outline.private.push(wide);
        let next = self.block();
        self.finish(at, End::Branch(On::Just(stays), [Successor::to(next), Successor::to(exit)]));
        next
    }

    fn check_tag(&mut self, at: Block, object: &Object) {
        self.pos.goto_bottom(at);
        let tag = self.load_field(object, 2);
        let right = self.pos.ins().icmp_imm_s(IntCC::Equal, tag, TAG);
        let code = TrapCode::unwrap_user(1 + self.random.below(4) as u8);
        self.pos.ins().trapz(right, code);
    }

    /// Stores a place to an element of the array, and maybe something else to another array or to a field.
    fn fill(&mut self, at: Block, object: &Object, (index, places): (Value, [Value; 2])) {
        let size = i64::from(object.ty.bytes());
        self.pos.goto_bottom(at);
        let pointer = self.load_field(object, 1);
        let address = match object.ty == types::I64 {
            true => pointer,
            false => {
                let wide = self.pos.ins().uextend(types::I64, pointer);
                let image = self.image();
                self.pos.ins().iadd(image, wide)
            }
        };
        let distance = self.pos.ins().imul_imm_s(index, size);
        let address = self.pos.ins().iadd(address, distance);
        self.outline.private.extend([distance, address]);
        let value = self.random.pick(&[places[0], places[1], pointer]);
        if self.random.chance(30) {
            let old = self.pos.ins().load(object.ty, object.flags, address, 0);
            self.outline.private.push(old);
            self.store_field(object, 3, old);
        }
        self.pos.ins().store(object.flags, value, address, 0);
        if self.random.chance(20) {
            self.store_field(object, 3, value);
        }
    }

    /// Tells whether the fields are what they were, but not where the array is.
    fn tell(&mut self, at: Block, object: &Object, place: Value) {
        for (field, was) in [(0, None), (1, Some(place)), (2, None)] {
            self.pos.goto_bottom(at);
            let value = self.load_field(object, field);
            let same = match was {
                Some(was) => self.pos.ins().icmp(IntCC::Equal, value, was),
                None => self.pos.ins().icmp_imm_s(IntCC::UnsignedLessThan, value, TAG + 1),
            };
            let wide = self.pos.ins().uextend(types::I64, same);
            self.outline.private.extend([same, wide]);
            self.absorb(at, wide);
        }
    }
}
