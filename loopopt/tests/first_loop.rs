//! The program that the guide starts with: it runs, and stands there as it is.

#[path = "../examples/first_loop.rs"]
mod first_loop;

#[test]
fn runs() {
    first_loop::main().expect("it compiles and runs its loop");
}

/// Not in a package of the library alone, which is without the guide.
#[test]
fn is_in_the_guide() {
    let Ok(guide) = std::fs::read_to_string("../docs/guide.md") else { return };
    assert!(guide.contains(include_str!("../examples/first_loop.rs")), "docs/guide.md has another program");
}
