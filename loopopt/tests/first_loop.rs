//! The program that the guide starts with: it runs, and is there word for word.

#[path = "../examples/first_loop.rs"]
mod first_loop;

#[test]
fn runs() {
    first_loop::main().expect("it compiles and runs its loop");
}

/// The reader has a loop in CLIF and no more than this to write.
#[test]
fn is_short() {
    let (before, rest) = include_str!("../examples/first_loop.rs").split_once("/// Adds up").expect("it has a loop");
    let (_, after) = rest.split_once("}\";").expect("the loop ends");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    assert!(before.lines().chain(after.lines()).filter(is_code).count() <= 30);
}

#[test]
fn is_in_the_guide() {
    let guide = std::fs::read_to_string("docs/guide.md").expect("the package has the guide");
    assert!(guide.contains(include_str!("../examples/first_loop.rs")), "docs/guide.md has another program");
}
