use asx::prelude::*;

#[asx::test]
fn not_async() {}

#[asx::test]
async fn two(cx: &Cx, more: u32) {}

#[asx::test]
async fn generic<T>(cx: &Cx) {}

#[asx::test]
#[test]
async fn a_test_already() {}

#[asx::test]
struct NoFunction;

fn main() {}
