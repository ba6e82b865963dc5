//! What `explain` says of a function: the remarks of each loop.

use super::super::explain::{FunctionRecord, LoopRecord, RemarkRecord};
use super::source::Placed;
use crate::listing::count;
use maud::{Markup, html};

/// The remarks of a function, with names for their places. Those about which nothing can be done have none.
pub(super) fn placed<'a>(function: &'a FunctionRecord, prefix: &str) -> Vec<Placed<'a>> {
    let of_loops = function.loops.iter().flat_map(|lp| &lp.remarks);
    let shown = of_loops.chain(&function.others).filter(|remark| is_shown(remark));
    shown.enumerate().map(|(number, remark)| Placed { remark, id: format!("{prefix}r{number}") }).collect()
}

fn is_shown(remark: &RemarkRecord) -> bool {
    remark.done || remark.help.is_some()
}

/// The remarks by loop.
pub(super) fn remarks(function: &FunctionRecord, placed: &[Placed<'_>]) -> Markup {
    html! {
        @if function.loops.is_empty() && function.others.is_empty() { p { "No loops, nothing to do." } }
        @for lp in &function.loops { (of_loop(lp, placed)) }
        @if function.others.iter().any(is_shown) {
            h4 { "Of no loop" }
            (list(&function.others, placed))
        }
        (refusals(function))
    }
}

fn of_loop(lp: &LoopRecord, placed: &[Placed<'_>]) -> Markup {
    let kind = if lp.depth == 1 { "Loop" } else { "Inner loop" };
    html! {
        h4 class={ "depth" (lp.depth.min(4)) } {
            (kind) " at " code { (lp.header) }
            @if let Some(line) = lp.line { ", " a href={ "#L" (line) } { "line " (line) } }
        }
        @if let Some(words) = &lp.summary { p.emitted { "Instructions " strong { (words) } } }
        @if lp.remarks.iter().any(is_shown) {
            (list(&lp.remarks, placed))
        } @else if lp.remarks.is_empty() {
            p { "No pass found anything to do." }
        } @else {
            p { "Nothing was done." }
        }
    }
}

fn list(remarks: &[RemarkRecord], placed: &[Placed<'_>]) -> Markup {
    let id =
        |remark: &RemarkRecord| placed.iter().find(|other| std::ptr::eq(other.remark, remark)).map(|placed| &placed.id);
    html! {
        ul.remarks {
            @for remark in remarks.iter().filter(|remark| is_shown(remark)) {
                li id=[id(remark)] class=(if remark.done { "done" } else { "refused" }) { (one(remark)) }
            }
        }
    }
}

fn one(remark: &RemarkRecord) -> Markup {
    html! {
        strong { a href={ "passes.html#" (remark.pass) } { (remark.pass) } } " " em { (if remark.done { "done" } else { "not done" }) } " " (remark.message)
        @if remark.done && remark.times > 1 { " (" (remark.times) " times)" }
        @if let Some(reason) = remark.reason { " " small { "(" (reason) ")" } }
        @for place in &remark.places {
            p { a href={ "#L" (place.line) } { "line " (place.line) } " " code { (place.text) } }
        }
        @if !remark.rests_on.is_empty() { p { "rests on: " (remark.rests_on.join("; ")) } }
        @if let Some(help) = remark.help { p { "what would help: " (help) } }
    }
}

/// How much was refused that cannot be helped. The same is on most pages, so it is not said here what.
fn refusals(function: &FunctionRecord) -> Markup {
    let of_loops = function.loops.iter().flat_map(|lp| &lp.remarks);
    let hidden = of_loops.chain(&function.others).filter(|remark| !is_shown(remark)).count();
    html! {
        @if hidden > 0 {
            p.key { (count(hidden, "refusal")) " about which nothing can be done: " code { "explain --all" } " shows them." }
        }
    }
}
