//! A program that starts a million tasks, a thousand at a time, needs the memory of a thousand.

#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::rc::Rc;

use asx_runtime::{Cancelled, Cx, Scope};
use asx_web::Config;
use asx_web::page::Page;

/// Pages of memory in use.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_does_not_grow_over_a_million_tasks() {
    let (page, runtime) = Page::open(Config::default());
    let (early, late) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (first, last) = (early.clone(), late.clone());
    let program = runtime
        .start(async move |cx: Cx| {
            for round in 0..1000 {
                let done: Result<(), Cancelled> = cx
                    .scope(async |s: Scope<Cancelled>| {
                        for _ in 0..1000 {
                            let _task = s.spawn(async |_cx: Cx| Ok(()));
                        }
                        Ok(())
                    })
                    .await;
                done.unwrap();
                let seen = if round == 10 { &first } else { &last };
                seen.set(resident());
            }
        })
        .unwrap();
    page.run(&runtime);
    assert!(program.is_over());
    assert!(runtime.certificate().ready > 1_000_000);
    let (early, late) = (early.get(), late.get());
    assert!(late <= early + 256, "{late} pages at the end, {early} after ten rounds");
}
