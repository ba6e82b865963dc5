//! A ratio as a bar with its interval, for a row of a table.

use crate::report::json::Measured;
use maud::{Markup, html};

/// Units for a ratio of 1.
const ONE: f64 = 120.0;
const WIDTH: f64 = 160.0;

/// The bar. It is grey if the ratio may be noise, and it ends at the edge if the ratio is larger than the room is.
pub(super) fn bar(measured: &Measured) -> Markup {
    let at = |ratio: f64| format!("{:.1}", (ratio * ONE).min(WIDTH));
    let class = match measured.ratio {
        _ if measured.no_gain => "bar noise",
        ratio if ratio > 1.0 => "bar slower",
        _ => "bar",
    };
    let (low, high) = (at(measured.low), at(measured.high));
    html! {
        svg class=(class) viewBox="0 0 160 14" role="img" aria-label=(format!("{:.3}", measured.ratio)) {
            rect y="2" height="10" width=(at(measured.ratio)) {}
            path d=(format!("M{low} 7H{high}M{low} 3.5v7M{high} 3.5v7")) {}
            path.one d="M120 0v14" {}
        }
    }
}
