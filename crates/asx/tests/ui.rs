//! What must not compile, and how the compiler says so.

#[test]
fn misuse_is_explained() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.compile_fail(if cfg!(feature = "lab") {
        "tests/ui/lab/*.rs"
    } else {
        "tests/ui/no_lab/*.rs"
    });
}
