//! Code that counts, in the order in which [`Recorder`](super::Recorder) reads it.

use super::{EXIT_COUNT_CLASSES, TOP_VALUES};
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AliasRegionData, InstBuilder, MemFlagsData, Type, Value, types};

/// How many counters a value has: how often there was one, then values and how often each was seen.
pub(super) const WORDS_PER_VALUE: usize = 1 + 2 * TOP_VALUES;

/// Counters that were not used yet, at an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    next: u64,
}

/// A counter in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter(u64);

impl Counters {
    pub(super) fn new(address: u64) -> Self {
        Self { next: address }
    }

    /// The next ones.
    pub(crate) fn take(&mut self, count: usize) -> Counter {
        let counter = Counter(self.next);
        self.next += 8 * count as u64;
        counter
    }

    /// Those for one loop: how often its back edge was taken, and the classes of how often it was when the loop was left.
    pub(crate) fn take_exits(&mut self) -> (Counter, Counter) {
        (self.take(1), self.take(EXIT_COUNT_CLASSES))
    }

    /// Those for one value.
    pub(crate) fn take_value(&mut self) -> Counter {
        self.take(WORDS_PER_VALUE)
    }
}

/// Emits code that counts.
pub(crate) struct Emitter<'f> {
    pub(crate) cursor: FuncCursor<'f>,
    /// The type of an address.
    pub(crate) pointer: Type,
}

impl Emitter<'_> {
    /// Adds `count` to a counter.
    pub(crate) fn add(&mut self, counter: Counter, count: Value) {
        let address = self.address(counter);
        self.add_at(Region::Single, address, count);
    }

    /// Adds 1 to a counter.
    pub(crate) fn add_one(&mut self, counter: Counter) {
        let one = self.cursor.ins().iconst(types::I64, 1);
        self.add(counter, one);
    }

    /// Adds 1 to the class of `count`.
    pub(crate) fn add_class(&mut self, classes: Counter, count: Value) {
        let zeros = self.cursor.ins().clz(count);
        let all = self.cursor.ins().iconst(types::I64, 64);
        let bits = self.cursor.ins().isub(all, zeros);
        let most = self.cursor.ins().iconst(types::I64, EXIT_COUNT_CLASSES as i64 - 1);
        let class = self.cursor.ins().umin(bits, most);
        let offset = self.cursor.ins().ishl_imm_u(class, 3);
        let offset = self.resize(offset);
        let start = self.address(classes);
        let address = self.cursor.ins().iadd(start, offset);
        let one = self.cursor.ins().iconst(types::I64, 1);
        self.add_at(Region::Tables, address, one);
    }

    /// Counts `value` in its table: in the place that has it, or is free. If there is none, the last place counts down.
    pub(crate) fn add_value(&mut self, table: Counter, value: Value) {
        let value = match self.cursor.func.dfg.value_type(value) {
            types::I64 => value,
            _ => self.cursor.ins().uextend(types::I64, value),
        };
        self.add_one(table);
        let places: [Value; TOP_VALUES] =
            std::array::from_fn(|place| self.address(Counter(table.0 + 8 + 16 * place as u64)));
        let mut found = None;
        for &place in places.iter().rev() {
            let (held, count) = (self.load(Region::Tables, place, 0), self.load(Region::Tables, place, 8));
            let is_it = self.cursor.ins().icmp(IntCC::Equal, held, value);
            let is_free = self.cursor.ins().icmp_imm_u(IntCC::Equal, count, 0);
            let fits = self.cursor.ins().bor(is_it, is_free);
            found = Some(match found {
                None => {
                    let [up, down] = [1, -1].map(|by| self.cursor.ins().iadd_imm_s(count, by));
                    let count = self.cursor.ins().select(fits, up, down);
                    (place, self.cursor.ins().select(fits, value, held), count)
                }
                Some((other, other_value, other_count)) => {
                    let up = self.cursor.ins().iadd_imm_s(count, 1);
                    let place = self.cursor.ins().select(fits, place, other);
                    let held = self.cursor.ins().select(fits, value, other_value);
                    (place, held, self.cursor.ins().select(fits, up, other_count))
                }
            });
        }
        let (place, held, count) = found.expect("a table has places");
        self.store(Region::Tables, held, place, 0);
        self.store(Region::Tables, count, place, 8);
    }

    fn add_at(&mut self, region: Region, address: Value, count: Value) {
        let old = self.load(region, address, 0);
        let new = self.cursor.ins().iadd(old, count);
        self.store(region, new, address, 0);
    }

    fn address(&mut self, counter: Counter) -> Value {
        self.cursor.ins().iconst(self.pointer, counter.0.cast_signed())
    }

    fn resize(&mut self, offset: Value) -> Value {
        match self.pointer {
            types::I64 => offset,
            pointer => self.cursor.ins().ireduce(pointer, offset),
        }
    }

    fn load(&mut self, region: Region, address: Value, offset: i32) -> Value {
        let flags = self.flags(region);
        self.cursor.ins().load(types::I64, flags, address, offset)
    }

    fn store(&mut self, region: Region, value: Value, address: Value, offset: i32) {
        let flags = self.flags(region);
        self.cursor.ins().store(flags, value, address, offset);
    }

    /// Counters have regions of their own, so that they are proved disjoint from what the program has regions for, and are carried in registers.
    fn flags(&mut self, region: Region) -> MemFlagsData {
        let (user_id, description) = match region {
            Region::Single => (0x6c70_7265, "loopopt: counters"),
            Region::Tables => (0x6c70_7266, "loopopt: tables of counters"),
        };
        let data = AliasRegionData { user_id, description: description.into() };
        let region = self.cursor.func.dfg.alias_regions.insert(data);
        MemFlagsData::trusted().with_alias_region(Some(region))
    }
}

/// What is counted where.
#[derive(Clone, Copy)]
enum Region {
    /// At one address.
    Single,
    /// At an address that depends on what is counted.
    Tables,
}
