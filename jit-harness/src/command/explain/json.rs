//! The record of `explain --json`.

use super::emitted::{Emitted, in_words};
use super::unit::Said;
use super::{Printer, refusal};
use serde::Serialize;

/// What is printed.
#[derive(Serialize)]
pub(in crate::command) struct Record {
    pub(in crate::command) functions: Vec<FunctionRecord>,
}

/// A function.
#[derive(Serialize)]
pub(in crate::command) struct FunctionRecord {
    pub(in crate::command) name: String,
    pub(in crate::command) changed: bool,
    pub(in crate::command) loops: Vec<LoopRecord>,
    /// Of what is no loop: cycles with several entries, stack slots, the function as a whole.
    pub(in crate::command) others: Vec<RemarkRecord>,
    pub(in crate::command) stack_accesses: [usize; 2],
}

/// A loop of the function as it came in.
#[derive(Serialize)]
pub(in crate::command) struct LoopRecord {
    pub(in crate::command) header: String,
    pub(in crate::command) line: Option<usize>,
    pub(in crate::command) depth: u32,
    /// The sizes of the innermost loops of machine code that it was and is, with cold ones.
    pub(in crate::command) instructions: [Vec<usize>; 2],
    /// The same in words.
    pub(in crate::command) summary: Option<String>,
    pub(in crate::command) remarks: Vec<RemarkRecord>,
}

#[derive(Serialize)]
pub(in crate::command) struct RemarkRecord {
    pub(in crate::command) pass: &'static str,
    pub(in crate::command) header: String,
    pub(in crate::command) line: Option<usize>,
    pub(in crate::command) done: bool,
    /// How often it is said of the loop and its copies.
    pub(in crate::command) times: usize,
    pub(in crate::command) message: String,
    pub(in crate::command) reason: Option<&'static str>,
    pub(in crate::command) help: Option<&'static str>,
    pub(in crate::command) rests_on: Vec<&'static str>,
    pub(in crate::command) places: Vec<PlaceRecord>,
}

/// A line of the file that defines a value of the message.
#[derive(Serialize)]
pub(in crate::command) struct PlaceRecord {
    pub(in crate::command) line: usize,
    pub(in crate::command) text: String,
}

impl Printer<'_> {
    /// The function with all remarks, or with those of the passes that are asked for.
    pub(in crate::command) fn record(&self) -> FunctionRecord {
        let explained = self.explained;
        let loops = explained.before.loops().map(|lp| {
            let data = explained.before.data(lp);
            let none = [Vec::new(), Vec::new()];
            let emitted = explained.emitted.get(&lp).unwrap_or(&none);
            let sizes = |loops: &Vec<Emitted>| loops.iter().map(|lp| lp.insts).collect();
            LoopRecord {
                header: data.header.to_string(),
                line: self.line(data.header),
                depth: data.depth,
                instructions: emitted.each_ref().map(sizes),
                summary: in_words(&emitted[0], &emitted[1], explained.unrolled(lp)),
                remarks: self.remark_records(explained.remarks(Some(lp))),
            }
        });
        FunctionRecord {
            name: self.name.to_owned(),
            changed: explained.report.changed,
            loops: loops.collect(),
            others: self.remark_records(explained.remarks(None)),
            stack_accesses: explained.stack_accesses,
        }
    }

    fn remark_records<'r>(&self, remarks: impl Iterator<Item = &'r Said>) -> Vec<RemarkRecord> {
        let wanted = |said: &&Said| self.shown.of_passes(&said.remark);
        let record = |Said { remark, times }: &Said| {
            let (reason, help) = refusal(remark);
            RemarkRecord {
                pass: remark.pass,
                header: remark.header.to_string(),
                line: self.line(remark.header),
                done: remark.fired(),
                times: *times,
                message: remark.message.to_string(),
                reason,
                help,
                rests_on: remark.claims().iter().map(|claim| claim.text()).collect(),
                places: self
                    .places(remark)
                    .into_iter()
                    .map(|(line, text)| PlaceRecord { line, text: text.to_owned() })
                    .collect(),
            }
        };
        remarks.filter(wanted).map(record).collect()
    }
}
