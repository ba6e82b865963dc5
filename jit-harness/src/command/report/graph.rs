//! The flow graph of a function as a picture. [`layout`] finds the places; what is drawn there is ours, so that style sheets have a
//! say in it and blocks can be links.

use crate::error::guard;
use crate::traced::State;
use anyhow::Result;
use cranelift_codegen::ir::Block;
use layout::core::base::Orientation;
use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::{Point, Position};
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The most blocks that are drawn.
const MAX_BLOCKS: usize = 150;
/// How far a back edge is drawn beside the edge that it would be drawn over.
const BESIDE: f64 = 13.0;
/// The size of a block, with two lines of text in it. The style sheet has it too: a page has hundreds of blocks.
const WIDTH: f64 = 82.0;
const HEIGHT: f64 = 40.0;
/// The height of one with a third line, which says that a check is gone.
const TALL: f64 = 55.0;
const MAX_LINES: usize = 3;
/// How many colours there are for loops. A loop has the one of the loop that it is from.
const COLOURS: usize = 6;
/// Room at the right of a block for an edge to itself.
const LOOP: f64 = 20.0;
/// Room around the graph.
const MARGIN: f64 = 8.0;

/// The head of all arrows, once on each page.
pub(super) fn markers() -> Markup {
    html! {
        svg.markers width="0" height="0" aria-hidden="true" {
            defs {
                marker id="head" viewBox="0 0 10 8" refX="9" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="8" orient="auto-start-reverse" {
                    path d="M0 0L10 4L0 8z" {}
                }
            }
        }
    }
}

/// The picture. Each block is a link to `anchor` and its name.
pub(super) fn graph(state: &State, anchor: &str) -> Markup {
    let blocks: Vec<Block> = state.func.layout.blocks().collect();
    if blocks.len() > MAX_BLOCKS {
        return html! { p { "Not drawn: it has " (blocks.len()) " blocks. " code { "show --dot" } " gives it to Graphviz." } };
    }
    match guard(|| draw(state, &blocks, anchor)) {
        Ok(picture) => picture,
        Err(error) => html! { p { "It cannot be drawn: " (error) } },
    }
}

fn draw(state: &State, blocks: &[Block], anchor: &str) -> Result<Markup> {
    let nodes: Vec<Node> = blocks.iter().map(|&block| Node::new(state, block)).collect();
    let mut visual = VisualGraph::new(Orientation::TopToBottom);
    let mut handles = BTreeMap::new();
    for (number, (block, node)) in blocks.iter().zip(&nodes).enumerate() {
        let mut element = Element::create_with_properties(
            ShapeKind::new_box(""),
            StyleAttr::simple(),
            Orientation::TopToBottom,
            node.size(),
            number.to_string(),
        );
        element.pos = Position::new(Point::zero(), node.size(), Point::zero(), Point::new(30.0, 34.0));
        handles.insert(*block, visual.add_node(element));
    }
    // What comes later and closes a cycle is drawn upwards: back edges come last.
    for is_back in [false, true] {
        // One from a block to itself is drawn with the block.
        for edge in edges(state, blocks).iter().filter(|edge| edge.is_back == is_back && edge.from != edge.to) {
            let arrow = Arrow { properties: Some(edge.class().to_owned()), ..Arrow::default() };
            visual.add_edge(arrow, handles[&edge.from], handles[&edge.to]);
        }
    }
    let mut canvas = Canvas::default();
    visual.do_it(false, false, false, &mut canvas);
    Ok(canvas.picture(&nodes, anchor))
}

/// A block as it is drawn.
struct Node {
    name: String,
    lines: Vec<String>,
    class: String,
    /// Whether it is a loop by itself.
    is_loop: bool,
}

impl Node {
    fn new(state: &State, block: Block) -> Self {
        let insts = state.func.layout.block_insts(block).count();
        let mut lines =
            vec![block.to_string(), if insts == 1 { "1 inst".to_owned() } else { format!("{insts} insts") }];
        let mut class = match state.forest.innermost(block) {
            Some(lp) => format!("l{}", state.origins.get(&lp).map_or(0, |place| place % COLOURS)),
            None => String::new(),
        };
        if state.func.layout.is_cold(block) {
            class.push_str(" cold");
        }
        let is_loop = state.func.block_successors(block).any(|next| next == block);
        if state.relieved.contains(&block) {
            class.push_str(" relieved");
            lines.push("check gone".to_owned());
        }
        Self { name: block.to_string(), lines, class: class.trim_start().to_owned(), is_loop }
    }

    fn size(&self) -> Point {
        let height = if self.lines.len() == MAX_LINES { TALL } else { HEIGHT };
        Point::new(WIDTH, height)
    }
}

struct Edge {
    from: Block,
    to: Block,
    is_back: bool,
    is_cold: bool,
}

impl Edge {
    fn class(&self) -> &'static str {
        match (self.is_back, self.is_cold) {
            (true, false) => "back",
            (false, false) => "",
            (_, true) => "cold",
        }
    }
}

/// One line for all edges from one block to another.
fn edges(state: &State, blocks: &[Block]) -> Vec<Edge> {
    let (func, forest) = (&state.func, &state.forest);
    let from_block = |&from: &Block| {
        let targets: BTreeSet<Block> = func.block_successors(from).collect();
        let edge = move |to| Edge {
            from,
            to,
            is_back: forest.loop_of_header(to).is_some_and(|lp| forest.contains(lp, from)),
            is_cold: func.layout.is_cold(from) || func.layout.is_cold(to),
        };
        targets.into_iter().map(edge).collect::<Vec<_>>()
    };
    blocks.iter().flat_map(from_block).collect()
}

/// An edge as it is drawn.
struct Line {
    path: String,
    class: String,
    /// Whether the arrow's head is at the start.
    is_up: bool,
}

/// What is drawn, with the places that the layout has found.
#[derive(Default)]
struct Canvas {
    /// The numbers of nodes, their places and sizes.
    boxes: Vec<(usize, Point, Point)>,
    arrows: Vec<Line>,
    /// The corners of the whole.
    bounds: Option<[f64; 4]>,
}

impl Canvas {
    fn reach(&mut self, at: Point) {
        let [left, top, right, bottom] = self.bounds.unwrap_or([at.x, at.y, at.x, at.y]);
        self.bounds = Some([left.min(at.x), top.min(at.y), right.max(at.x), bottom.max(at.y)]);
    }

    fn picture(&self, nodes: &[Node], anchor: &str) -> Markup {
        let [left, top, right, bottom] = self.bounds.unwrap_or_default();
        let (width, height) = (right - left + 2.0 * MARGIN, bottom - top + 2.0 * MARGIN);
        let shown = format!("{:.0} {:.0} {width:.0} {height:.0}", left - MARGIN, top - MARGIN);
        html! {
            svg viewBox=(shown) width=(format!("{width:.0}")) height=(format!("{height:.0}")) {
                @for is_up in [false, true] {
                    g marker-end=[marker(!is_up)] marker-start=[marker(is_up)] {
                        @for arrow in self.arrows.iter().filter(|arrow| arrow.is_up == is_up) {
                            path class=[Some(&arrow.class).filter(|class| !class.is_empty())] d=(arrow.path) {}
                        }
                    }
                }
                @for &(number, at, size) in &self.boxes { (node(&nodes[number], at, size, anchor)) }
            }
        }
    }
}

/// The path through points that come as [`RenderBackend::draw_arrow`] gets them. Its coordinates are relative, which is shorter.
fn curve(points: &[(Point, Point)]) -> String {
    let rounded = |point: Point| [point.x.round(), point.y.round()];
    let from = |at: [f64; 2], point: Point| format!("{} {}", rounded(point)[0] - at[0], rounded(point)[1] - at[1]);
    let Some(&(start, control)) = points.first() else { return String::new() };
    let mut at = rounded(start);
    let mut path = format!("M{} {}c{}", at[0], at[1], from(at, control));
    for (place, &(control, end)) in points.iter().enumerate().skip(1) {
        if place >= 2 && is_straight(&points[place - 1..]) {
            continue;
        }
        let command = if place == 1 { " " } else { "s" };
        write!(path, "{command}{} {}", from(at, control), from(at, end)).expect("there is room for text");
        at = rounded(end);
    }
    path
}

/// Whether a line goes straight down through the second point to the third.
fn is_straight(points: &[(Point, Point)]) -> bool {
    let [before, at, after, ..] = points else { return false };
    let x = before.1.x;
    [at.0.x, at.1.x, after.0.x, after.1.x].iter().all(|other| (other - x).abs() < 0.5)
}

fn marker(is_there: bool) -> Option<&'static str> {
    is_there.then_some("url(#head)")
}

/// A block at its place. The style sheet has what all blocks share.
fn node(node: &Node, at: Point, size: Point, anchor: &str) -> Markup {
    let corner = format!("M{:.0} {:.0}", at.x + size.x, at.y + size.y * 0.7);
    let place = format!("translate({:.0} {:.0})", at.x, at.y);
    html! {
        @if node.is_loop {
            path.back d={ (corner) "c26 10 26 " (format!("{:.0}", -10.0 - size.y * 0.4)) " 0 " (format!("{:.0}", size.y * -0.4)) } marker-end=[marker(true)] {}
        }
        a href={ "#" (anchor) (node.name) } class=[Some(&node.class).filter(|class| !class.is_empty())] transform=(place) {
            rect {}
            @for text in &node.lines { text { (text) } }
        }
    }
}

impl RenderBackend for Canvas {
    fn draw_rect(&mut self, xy: Point, size: Point, _: &StyleAttr, properties: Option<String>, _: Option<ClipHandle>) {
        self.reach(xy);
        self.reach(xy.add(size).add(Point::new(LOOP, 0.0)));
        if let Some(number) = properties.and_then(|number| number.parse().ok()) {
            self.boxes.push((number, xy, size));
        }
    }

    /// Only drawn to find errors of the layout.
    fn draw_line(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    /// No block is a circle.
    fn draw_circle(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    /// The text of a block is drawn with its box.
    fn draw_text(&mut self, _: Point, _: &str, _: &StyleAttr) {}

    /// Each point comes with the control point before it, but for the first, which has the one after it.
    fn draw_arrow(
        &mut self,
        points: &[(Point, Point)],
        _: bool,
        head: (bool, bool),
        _: &StyleAttr,
        properties: Option<String>,
        _: &str,
    ) {
        let class = properties.unwrap_or_default();
        let aside = if head.0 && points.len() == 2 { Point::new(BESIDE, 0.0) } else { Point::zero() };
        let points: Vec<_> = points.iter().map(|(first, second)| (first.add(aside), second.add(aside))).collect();
        for point in points.iter().flat_map(|(first, second)| [first, second]) {
            self.reach(*point);
        }
        let path = curve(&points);
        self.arrows.push(Line { path, class, is_up: head.0 });
    }

    /// No shape is clipped.
    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        0
    }
}
