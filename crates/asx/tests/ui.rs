//! Programs that must not compile, and the messages of the compiler.

#[test]
fn misuse_is_explained() {
    let cases = trybuild::TestCases::new();
    if cfg!(feature = "lab") {
        // With the lab, the messages list more types called `Task`.
        return cases.compile_fail("tests/ui/lab/*.rs");
    }
    cases.compile_fail("tests/ui/*.rs");
    cases.compile_fail("tests/ui/no_lab/*.rs");
}
