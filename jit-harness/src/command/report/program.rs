//! The page of a file: what was measured, and for each function what was done to it and its code.

use super::super::explain::FunctionRecord;
use super::parts::{change, page as whole, tile};
use super::remarks::{placed, remarks};
use super::{MAX_SHOWN, Source, code, functions, graph, source};
use crate::listing::count;
use crate::report::json::{Bench, Measured, Record};
use crate::report::table::time;

use crate::traced::{State, Traced};
use anyhow::Result;
use maud::{Markup, html};

/// A function with what was done to it.
pub(super) struct Function {
    pub(super) record: FunctionRecord,
    /// Nothing if the function is too large to be shown.
    pub(super) traced: Option<Traced>,
}

/// What a page is about.
pub(super) struct Program<'a> {
    pub(super) source: &'a Source,
    /// What was measured of it, if anything was.
    pub(super) records: Vec<&'a Record>,
    pub(super) functions: Vec<Function>,
}

impl<'a> Program<'a> {
    /// Finds what was measured of a file, and what is done to its functions.
    pub(super) fn new(source: &'a Source, bench: &'a Bench) -> Result<Self> {
        let is_of = |record: &&Record| source.subjects.iter().any(|subject| subject.name == record.name);
        let records = bench.programs.iter().filter(is_of).collect();
        Ok(Self { source, records, functions: functions(source)? })
    }

    /// Instructions of an iteration before and after, one text for each loop of which it is one number.
    pub(super) fn iterations(&self) -> Vec<&str> {
        let loops = self.functions.iter().flat_map(|function| &function.record.loops);
        let words = loops.filter_map(|lp| lp.summary.as_deref());
        words.map(|words| words.split([';', ',']).next().unwrap_or(words).trim_end_matches(" per iteration")).collect()
    }

    /// The passes that fired, in their order, with how often they did.
    pub(super) fn fired(&self) -> String {
        let records = || self.functions.iter().map(|function| &function.record);
        let remarks =
            || records().flat_map(|record| record.loops.iter().flat_map(|lp| &lp.remarks).chain(&record.others));
        let of = |pass: &'static str| remarks().filter(move |remark| remark.done && remark.pass == pass);
        let count = |pass| of(pass).map(|remark| remark.times).sum::<usize>();
        let counts = loopopt::pass_names().map(|pass| (pass, count(pass))).filter(|(_, count)| *count > 0);
        let words = counts.map(|(pass, count)| if count == 1 { pass.to_owned() } else { format!("{pass} {count}") });
        words.collect::<Vec<_>>().join(", ")
    }

    /// Bytes of machine code, if all functions are shown.
    pub(super) fn bytes(&self) -> Option<[usize; 2]> {
        let of =
            |function: &Function| function.traced.as_ref().map(|traced| traced.0.each_ref().map(|state| state.bytes));
        self.functions
            .iter()
            .map(of)
            .try_fold([0; 2], |sum, bytes| bytes.map(|bytes| [sum[0] + bytes[0], sum[1] + bytes[1]]))
    }
}

/// The page. `beside` are the programs before and after it.
pub(super) fn page(program: &Program<'_>, beside: [Option<&Source>; 2]) -> String {
    let Source { input, subjects, .. } = program.source;
    let lines = source::functions(&input.text);
    let sample = subjects.first().and_then(|subject| subject.sample);
    let body = html! {
        nav {
            a href="index.html" { "All programs" }
            @for (arrow, source) in ["←", "→"].into_iter().zip(beside) {
                @if let Some(source) = source { a href=(source.page) { (arrow) " " (source.input.name) } }
            }
        }
        h1 { (input.name) }
        @if let Some(sample) = sample {
            p.lead {
                (sample.about)
                @for tag in sample.tags { " " span.tag { (tag) } }
            }
        }
        @for record in &program.records { (figures(record, program.records.len() > 1)) }
        (static_figures(program))
        (graph::markers())
        @for (number, function) in program.functions.iter().enumerate() {
            (of_function(number, function, lines.get(number).map_or(&[], Vec::as_slice)))
        }
    };
    whole(&format!("{} – loopopt", input.name), &body)
}

/// What was measured.
fn figures(record: &Record, is_named: bool) -> Markup {
    html! {
        @if is_named { h2 { (record.name) } }
        @if let Some((word, what)) = record.wrong() { p.differs { (word) ": " (what) } }
        @if let Some(measured) = &record.measured { div.tiles { (tiles(measured)) } }
    }
}

fn tiles(measured: &Measured) -> Markup {
    let Measured { ratio, low, high, .. } = measured;
    let noise = if measured.no_gain { ", may be noise" } else { "" };
    let compile = measured.compile_ns.map(|ns| ns as f64);
    html! {
        (tile("time, by Cranelift's", &format!("{ratio:.3}"), &format!("{low:.3} – {high:.3}{noise}")))
        (tile("a call", &time(measured.loopopt_ns), &format!("{} before", time(measured.baseline_ns))))
        (tile("compile time", &time(compile[1]), &format!("{} before", time(compile[0]))))
        (tile("noise: Cranelift by itself", &format!("{:.3}", measured.noise), &count(measured.rounds, "round")))
        (tile("at the best placement", &format!("{:.3}", measured.best), &format!("spread {:.2} → {:.2}", measured.spread[0], measured.spread[1])))
        @if let Some(ratio) = measured.vs_unchecked { (tile("by that without checks", &format!("{ratio:.3}"), "both with loopopt")) }
    }
}

/// What needs no clock.
fn static_figures(program: &Program<'_>) -> Markup {
    let records = || program.functions.iter().map(|function| &function.record);
    let stack = records().fold([0; 2], |sum, record| [0, 1].map(|arm| sum[arm] + record.stack_accesses[arm]));
    let iterations = program.iterations();
    let shown = iterations.get(..2).unwrap_or(&iterations).join(" and ");
    let more = iterations.len().saturating_sub(2);
    html! {
        div.tiles {
            @if !shown.is_empty() {
                (tile("instructions of an iteration", &shown, &if more > 0 { format!("and {more} more loops") } else { String::new() }))
            }
            @if let Some(bytes) = program.bytes() { (tile("bytes of machine code", &change(bytes), "")) }
            @if stack != [0; 2] { (tile("stack accesses in innermost loops", &change(stack), "")) }
        }
    }
}

fn of_function(number: usize, function: &Function, lines: &[(usize, String)]) -> Markup {
    let record = &function.record;
    let prefix = format!("f{number}");
    let placed = placed(record, &prefix);
    let change = if record.changed { "changed" } else { "left as it is" };
    html! {
        section id=(prefix) {
            h2 { code { "%" (record.name) } " " small { (count(record.loops.len(), "loop")) ", " (change) } }
            div.explained {
                div { h3 { "Source" } (source::source(lines, &placed, &record.loops)) }
                div { h3 { "What was done" } (remarks(record, &placed)) }
            }
            @match &function.traced {
                None => p { "Its code is not shown: it has more than " (MAX_SHOWN) " instructions. " code { "show" } " does." },
                Some(Traced([before, after])) => (listings(&prefix, before, after)),
            }
        }
    }
}

/// Flow graphs, CLIF and machine code.
fn listings(prefix: &str, before: &State, after: &State) -> Markup {
    let anchors = [format!("{prefix}b-"), format!("{prefix}a-")];
    let anchors = anchors.each_ref().map(String::as_str);
    let graphs = match code::is_same(&before.clif, &after.clif) {
        true => vec![("before and after", before, anchors[0])],
        false => vec![("before", before, anchors[0]), ("after", after, anchors[1])],
    };
    html! {
        h3 { "Flow graph" }
        p.key {
            "Colours are loops, thick lines are back edges, " span.cold { "dashed" } " blocks are cold, "
            span.relieved { "green" } " edges: a check of the block is not in the loop any more. Each block leads to its CLIF."
        }
        div.pair {
            @for (title, state, anchor) in graphs {
                div.side { h5 { (title) } div.box.graph tabindex="0" { (graph::graph(state, anchor)) } }
            }
        }
        h3 { "CLIF" }
        p.key {
            "The numbers are those of the instructions before loopopt: a line is from the instruction with its number. Lines are "
            mark { "changed" } ", " del { "gone" } ", " ins { "new" } ", or " i { "copied or moved" } "."
        }
        (code::beside(&before.clif, &after.clif, Some(anchors)))
        h3 { "Machine code" }
        (code::beside(&before.code, &after.code, None))
    }
}
