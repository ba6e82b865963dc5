//! `report` from outside: the pages are whole, and what they say can be found in the programs.

mod common;

use common::{Bench, GOOD, text};
use scraper::{ElementRef, Html, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The largest report of all sample programs, in bytes.
const LARGEST: usize = 3_000_000;

/// The pages of a report, by their names.
struct Pages(BTreeMap<String, Html>);

impl Pages {
    /// Reads a folder and checks what all pages must be: HTML without errors, and with nothing from anywhere else.
    #[track_caller]
    fn open(folder: &Path) -> Self {
        let mut pages = BTreeMap::new();
        for name in files(folder).into_iter().filter(|name| name.ends_with(".html")) {
            let text = fs::read_to_string(folder.join(&name)).expect("it is text");
            let page = Html::parse_document(&text);
            assert!(page.errors.is_empty(), "{name}: {:?}", page.errors);
            assert!(
                all(&page, "script, iframe, object, embed, img, [style], [onclick], [onload]").is_empty(),
                "{name}"
            );
            pages.insert(name, page);
        }
        let style = fs::read_to_string(folder.join("report.css")).expect("it is text");
        assert!(!style.contains("@import") && !style.contains("url("), "the style sheet needs something else");
        let pages = Self(pages);
        pages.check_links(folder);
        pages
    }

    #[track_caller]
    fn check_links(&self, folder: &Path) {
        let ids: BTreeMap<&str, Vec<&str>> =
            self.0.iter().map(|(name, page)| (&name[..], attributes(page, "id"))).collect();
        for (name, page) in &self.0 {
            let distinct: BTreeSet<&&str> = ids[&name[..]].iter().collect();
            assert_eq!(distinct.len(), ids[&name[..]].len(), "{name}: two places have one name");
            assert!(attributes(page, "src").is_empty(), "{name}");
            for link in attributes(page, "href") {
                let (file, place) = link.split_once('#').map_or((link, None), |(file, place)| (file, Some(place)));
                let file = if file.is_empty() { name } else { file };
                assert!(!file.contains(['/', ':']) && folder.join(file).is_file(), "{name}: {link} leads nowhere");
                assert!(place.is_none_or(|place| ids[file].contains(&place)), "{name}: {link} leads nowhere");
            }
        }
    }

    fn page(&self, name: &str) -> &Html {
        self.0.get(name).unwrap_or_else(|| panic!("{name} is not in {:?}", self.0.keys()))
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it can be read").file_name().into_string().expect("it is text")).collect()
}

fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).expect("it is a selector")).collect()
}

fn attributes<'a>(page: &'a Html, name: &str) -> Vec<&'a str> {
    all(page, &format!("[{name}]")).iter().filter_map(|element| element.attr(name)).collect()
}

fn words(element: &ElementRef<'_>) -> String {
    element.text().collect()
}

/// What is in the elements, one text for each.
fn texts(page: &Html, selector: &str) -> Vec<String> {
    all(page, selector).iter().map(words).collect()
}

#[test]
fn the_parser_finds_errors() {
    for wrong in ["<p></div>", "<a id=x id=y></a>", "<svg><g></svg>", "<table><p></p></table>"] {
        assert!(!Html::parse_document(&format!("<!DOCTYPE html>{wrong}")).errors.is_empty(), "{wrong}");
    }
}

#[test]
fn all_samples_have_a_page() {
    let bench = Bench::new();
    bench.prints(&["report", "--no-time", "--out", "pages"]);
    let folder = bench.path("pages");
    let pages = Pages::open(&folder);
    let size: u64 = files(&folder).iter().map(|name| fs::metadata(folder.join(name)).expect("it is there").len()).sum();
    assert!(size < LARGEST as u64, "{size} bytes");
    let listed = texts(pages.page("index.html"), "tbody tr td:first-child a");
    let samples: Vec<&str> = bench_programs::all().iter().map(|sample| sample.name).collect();
    assert_eq!(listed, samples);
    assert_eq!(pages.0.len(), samples.len() + 2, "and the index, and the passes");
    for sample in bench_programs::all() {
        let page = pages.page(&format!("{}.html", sample.name));
        assert_eq!(texts(page, "h1"), [sample.name]);
        assert_eq!(texts(page, "section > h2 code"), [format!("%{}", sample.name.replace('-', "_"))]);
        assert_eq!(
            texts(page, "h3"),
            ["Source", "What was done", "Flow graph", "CLIF", "Machine code"],
            "{}",
            sample.name
        );
        let graphs = all(page, ".graph").len();
        assert!(graphs > 0 && all(page, ".graph > svg").len() == graphs, "{}: a graph cannot be drawn", sample.name);
        assert!(all(page, "ul.remarks li").len() + all(page, "p.key").len() > 0, "{}", sample.name);
    }
}

/// What a filter leads to is the tag of its programs: the style sheet hides the rows of others.
#[test]
fn programs_are_filtered_by_their_tags() {
    let bench = Bench::new();
    bench.prints(&["report", "sum", "sum-checked", "rare-call", "--no-time", "--out", "pages"]);
    let pages = Pages::open(&bench.path("pages"));
    let page = pages.page("index.html");
    assert_eq!(texts(page, ".filters a"), ["call 1", "checked 1", "memory 1", "all"]);
    assert_eq!(texts(page, "tr.t-checked td:first-child a"), ["sum-checked"]);
    assert_eq!(texts(page, "tr.t-call td:first-child a"), ["rare-call"]);
    assert!(texts(page, "style").concat().contains("#call:target ~ .box tbody tr:not(.t-call) { display: none; }"));
    assert_eq!(all(page, "#call ~ .box table").len(), 1);
}

#[test]
fn the_same_is_written_each_time() {
    let bench = Bench::new();
    for out in ["a", "b"] {
        bench.prints(&["report", "--no-time", "--filter", "checked", "--out", out]);
    }
    let names = files(&bench.path("a"));
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let [a, b] = ["a", "b"].map(|folder| fs::read(bench.path(folder).join(&name)).expect("it is there"));
        assert!(a == b, "{name} is another the second time");
    }
}

#[test]
fn lines_and_blocks_are_shown_as_they_are() {
    let bench = Bench::new();
    bench.prints(&["report", "sum-checked", "linked-list", "--no-time", "--out", "pages"]);
    let pages = Pages::open(&bench.path("pages"));
    let page = pages.page("sum-checked.html");
    let listing = |place: usize| texts(page, ".side pre:not(.numbers)")[place].clone();
    let numbers = |place: usize| texts(page, ".side pre.numbers")[place].clone();
    for place in 0..4 {
        assert_eq!(listing(place).lines().count(), numbers(place).lines().count(), "listing {place}");
    }
    // Before and after are beside each other.
    assert_eq!(listing(0).lines().count(), listing(1).lines().count());
    assert_eq!(listing(2).lines().count(), listing(3).lines().count());
    assert!(listing(0).contains("load.i64") && listing(3).contains("add "), "{}", listing(3));
    // The check is done in the loop before, and not after.
    assert!(listing(0).contains("trapnz"));
    let relieved = |page| texts(page, ".graph .relieved");
    assert!(relieved(page).iter().all(|block| block.contains("check gone")) && relieved(page).len() >= 2);
    assert!(relieved(pages.page("linked-list.html")).is_empty(), "it has no check");
    // Remarks are on the lines that they are about.
    let on_lines = texts(page, ".source .chip.done");
    assert!(
        ["rotate", "elide_checks", "partial_unroll"].iter().all(|pass| on_lines.contains(&(*pass).to_owned())),
        "{on_lines:?}"
    );
}

#[test]
fn special_characters_are_escaped() {
    let bench = Bench::new();
    let name = "a<b>&'\"c.clif";
    let evil = "</pre><script>alert(1)</script> & &amp; \" '";
    bench.file(name, GOOD.replace("block1(v3: i64, v4: i64):", &format!("block1(v3: i64, v4: i64): ; {evil}")));
    bench.prints(&["report", name, "--no-time", "--out", "pages"]);
    let pages = Pages::open(&bench.path("pages"));
    let page = pages.page("a-b----c-clif.html");
    assert_eq!(texts(page, "h1"), [name]);
    assert_eq!(texts(pages.page("index.html"), "tbody a"), [name]);
    assert!(texts(page, ".source li").iter().any(|line| line.contains(evil)), "the line is shown as it is");
    assert_eq!(all(page, "section").len(), 2, "one for each function");
}

#[test]
fn figures_are_those_of_a_measurement() {
    let bench = Bench::new();
    bench.file("good.clif", GOOD);
    bench.measures(&["report", "good.clif", "--quick", "--out", "pages", "--passes", "rotate"]);
    let pages = Pages::open(&bench.path("pages"));
    let index = pages.page("index.html");
    assert_eq!(all(index, ".plot > svg").len(), 3);
    assert_eq!(all(index, ".plot a circle").len(), 3, "the program is in each plot");
    assert_eq!(texts(index, "tbody td:first-child"), ["good.clif:20"]);
    let ratio: f64 = texts(index, "tbody strong")[0].parse().expect("it is a ratio");
    let interval = texts(index, "tbody td:nth-child(4)").remove(0);
    let ends: Vec<f64> = interval.split(" – ").map(|end| end.parse().expect("it is a ratio")).collect();
    assert!(ends[0] <= ratio && ratio <= ends[1], "{interval}: {ratio}");
    assert!(index.root_element().text().any(|text| text.contains("--quick --passes rotate")), "options are named");
    let tiles = texts(pages.page("good-clif.html"), ".tile strong");
    assert_eq!(tiles[0], format!("{ratio:.3}"));
}

#[test]
fn the_options_of_a_file_count() {
    let bench = Bench::new();
    let changes = |line: &str| {
        bench.file("options.clif", format!("{line}\n{GOOD}"));
        bench.prints(&["report", "options.clif", "--no-time", "--out", "pages"]);
        texts(Pages::open(&bench.path("pages")).page("options-clif.html"), "h2 small").remove(0)
    };
    assert_eq!(changes(""), "1 loop, changed");
    assert_eq!(changes("; options: fuel=0"), "1 loop, left as it is");
}

#[test]
fn what_differs_is_named() {
    let bench = Bench::new();
    bench.file("wrong.clif", GOOD.replace("%sum(mem, 5) == 10", "%sum(mem, 5) == 11"));
    let output = bench.run(&["report", "wrong.clif", "--quick", "--out", "pages"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let pages = Pages::open(&bench.path("pages"));
    for page in ["index.html", "wrong-clif.html"] {
        assert!(texts(pages.page(page), ".differs").iter().any(|what| what.contains("expected 11")), "{page}");
    }
}

#[test]
fn complaints() {
    let bench = Bench::new();
    bench.file("good.clif", GOOD);
    bench.file("silent.clif", "function %f() {\nblock0:\n    return\n}\n");
    bench.complains(&["report", "--no-time", "--filter", "nonsense", "--out", "pages"], &["`nonsense`", "`list`"]);
    bench.complains(&["report", "silent.clif", "--out", "pages"], &["silent.clif", "--no-time"]);
    bench.complains(&["report", "missing.clif", "--no-time", "--out", "pages"], &["missing.clif"]);
    bench
        .complains(&["report", "good.clif", "--no-time", "--out", "good.clif/pages"], &["good.clif/pages", "a folder"]);
    bench.prints(&["report", "silent.clif", "--no-time", "--out", "pages"]);
    assert!(Pages::open(&bench.path("pages")).0.contains_key("silent-clif.html"));
}
