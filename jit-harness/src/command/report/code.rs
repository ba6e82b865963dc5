//! Code before and after, side by side.

use crate::beside::{Kind, align};
use crate::traced::Line;
use maud::{Markup, PreEscaped, Render as _, html};

/// The title of the second listing.
const AFTER: &str = "after";

/// Two listings with their lines beside each other, or one if they are equal. `anchor` is what is put before the name of a block
/// to be linked to, one for each side.
pub(super) fn beside(before: &[Line], after: &[Line], anchor: Option<[&str; 2]>) -> Markup {
    if is_same(before, after) {
        let lines: Vec<_> = before.iter().map(|line| Some((line, Kind::Same))).collect();
        return html! {
            p { "loopopt does not change it." }
            div.pair { (side("before and after", &lines, anchor.map(|anchors| anchors[0]))) }
        };
    }
    let rows = align(before, after);
    let lines = |place: usize, listing: &'_ [Line]| -> Vec<Option<(Line, Kind)>> {
        rows.iter().map(|row| row[place].map(|(at, kind)| (listing[at].clone(), kind))).collect()
    };
    let sides = [("before", before), (AFTER, after)];
    html! {
        div.pair {
            @for (place, (title, listing)) in sides.into_iter().enumerate() {
                @let lines = lines(place, listing);
                @let lines: Vec<_> = lines.iter().map(|line| line.as_ref().map(|(line, kind)| (line, *kind))).collect();
                (side(title, &lines, anchor.map(|anchors| anchors[place])))
            }
        }
    }
}

/// Whether the listings say the same.
pub(super) fn is_same(before: &[Line], after: &[Line]) -> bool {
    before.iter().map(|line| &line.text).eq(after.iter().map(|line| &line.text))
}

/// A listing with the numbers of instructions at its left.
fn side(title: &str, lines: &[Option<(&Line, Kind)>], anchor: Option<&str>) -> Markup {
    let number = |line: &Option<(&Line, Kind)>| line.and_then(|(line, _)| line.from);
    let mut last = None;
    // Browsers drop a line break at the start of such an element, which can be an empty line.
    let mut numbers = "\n".to_owned();
    for line in lines {
        let this = number(line);
        // Several lines of machine code can be from one instruction.
        let text = this.filter(|_| this != last).map_or(String::new(), |number| number.to_string());
        numbers.push_str(&text);
        numbers.push('\n');
        last = this;
    }
    let kind = |line: &Option<(&Line, Kind)>| line.map_or(Kind::Same, |(_, kind)| kind);
    html! {
        div.side {
            h5 { (title) }
            div.box tabindex="0" {
                pre.numbers aria-hidden="true" { (numbers) }
                pre {
                    "\n"
                    @for run in lines.chunk_by(|a, b| kind(a) == kind(b)) {
                        @let text = text(run, anchor);
                        @match kind(&run[0]) {
                            Kind::Same => (text),
                            Kind::Changed => mark { (text) },
                            Kind::Alone if title == AFTER => ins { (text) },
                            Kind::Alone => del { (text) },
                            Kind::Elsewhere => i { (text) },
                        }
                    }
                }
            }
        }
    }
}

/// The lines. Those that begin a block can be linked to.
fn text(run: &[Option<(&Line, Kind)>], anchor: Option<&str>) -> Markup {
    let mut text = String::new();
    for line in run {
        let line = line.map_or("", |(line, _)| &line.text);
        let name = line.split(['(', ':', ' ']).next().unwrap_or_default();
        match anchor.filter(|_| name.starts_with("block")) {
            Some(anchor) => {
                let rest = &line[name.len()..];
                text.push_str(&html! { b id={ (anchor) (name) } { (name) } (rest) }.into_string());
            }
            None => text.push_str(&line.render().into_string()),
        }
        text.push('\n');
    }
    PreEscaped(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[(u32, &str)]) -> Vec<Line> {
        text.iter().map(|&(number, text)| Line { from: Some(number), text: text.to_owned(), is_cold: false }).collect()
    }

    #[test]
    fn lines_are_marked_and_escaped() {
        let before = lines(&[(1, "a < b"), (2, "c")]);
        let after = lines(&[(1, "a < b"), (3, "d & e"), (2, "f")]);
        let page = beside(&before, &after, None).into_string();
        assert!(page.contains("<pre>\na &lt; b\n\n<mark>c\n</mark></pre>"), "{page}");
        assert!(page.contains("<ins>d &amp; e\n</ins><mark>f\n</mark>"), "{page}");
        assert!(page.contains(">\n1\n\n2\n</pre>") && page.contains(">\n1\n3\n2\n</pre>"), "{page}");
    }

    #[test]
    fn equal_listings_are_shown_once() {
        let both = lines(&[(1, "a"), (2, "b")]);
        let page = beside(&both, &both, None).into_string();
        assert_eq!(page.matches("<h5>").count(), 1, "{page}");
    }

    #[test]
    fn blocks_can_be_linked_to() {
        let block = [Line { from: None, text: "block1(v2: i64):".to_owned(), is_cold: false }];
        let page = beside(&block, &[], Some(["f0b-", "f0a-"])).into_string();
        assert!(page.contains("<b id=\"f0b-block1\">block1</b>(v2: i64):"), "{page}");
    }
}
