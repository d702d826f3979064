use asx::prelude::*;

fn main() {
    asx::lab::check(async |_cx: Cx| 5).assert();
}
