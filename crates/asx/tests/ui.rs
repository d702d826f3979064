//! What must not compile, and how the compiler says so.

#[test]
fn misuse_is_explained() {
    let cases = trybuild::TestCases::new();
    if cfg!(feature = "lab") {
        // The others are said in slightly other words here: there are more things called `Task`.
        return cases.compile_fail("tests/ui/lab/*.rs");
    }
    cases.compile_fail("tests/ui/*.rs");
    cases.compile_fail("tests/ui/no_lab/*.rs");
}
