//! The page of what passes are good for, to which remarks link.

use super::super::explain::gain;
use super::parts::page as whole;
use maud::html;

/// The page.
pub(super) fn page() -> String {
    let gains = loopopt::pass_names().map(|pass| (pass, gain(pass).and_then(|gain| Some(gain.split_once(": ")?.1))));
    let body = html! {
        nav { a href="index.html" { "All programs" } }
        h1 { "What passes are good for" }
        p.lead { "In the order in which they run." }
        dl.passes { @for (pass, gain) in gains {
            dt id=(pass) { (pass) }
            dd { (gain.unwrap_or("It makes ready for others, or cleans up after them.")) }
        } }
    };
    whole("Passes – loopopt report", &body)
}
