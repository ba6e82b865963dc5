//! The example does what the README says.

#[allow(dead_code, reason = "the example's main is not called")]
#[path = "../examples/embed.rs"]
mod embed;

#[test]
fn the_example_optimizes_its_loop_and_is_right() {
    let mut out = Vec::new();
    embed::run(&mut out).expect("the example runs");
    let out = String::from_utf8(out).expect("text");
    assert!(out.contains("function 0: ") && out.contains("rotate"), "{out}");
    assert!(out.ends_with("1 + 2 + … + 1000 = 500500\n"), "{out}");
}
