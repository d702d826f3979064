use asx::prelude::*;

#[asx::main]
async fn two(cx: &Cx, more: u32) {}

#[asx::main]
async fn generic<T>(cx: &Cx) {}

#[asx::main]
async fn other(cx: &str) {}

fn main() {}
