#[asx::main]
fn main() {}
