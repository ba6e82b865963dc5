//! What all pages have.

use maud::{DOCTYPE, Markup, html};

/// A whole page.
pub(super) fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href="report.css";
            }
            body { (body) }
        }
    };
    // There are thousands of them. What is drawn may be closed like this, unlike other elements.
    page.into_string().replace("></path>", "/>").replace("></rect>", "/>")
}

/// A figure with what it is.
pub(super) fn tile(what: &str, figure: &str, more: &str) -> Markup {
    html! {
        div.tile {
            span { (what) }
            strong { (figure) }
            @if !more.is_empty() { span { (more) } }
        }
    }
}

/// `6 → 5`.
pub(super) fn change(pair: [usize; 2]) -> String {
    format!("{} → {}", pair[0], pair[1])
}

/// The quotient, if there is one.
pub(super) fn quotient(before: f64, after: f64) -> Option<f64> {
    (before > 0.0).then(|| after / before)
}
