//! Programs and contexts where they do not belong.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};


use asx_native::{BlockOnError, wait};
use asx_runtime::Cx;
use common::{ends, on_each};

/// The body's closure is called before there is anything to poll.
#[test]
fn a_program_inside_the_closure_of_a_body_is_refused() {
    ends(|| {
        on_each(|runtime| {
            let body = |_cx| {
                let inner = runtime.try_block_on(async |_cx: Cx| 1);
                assert!(matches!(inner, Err(BlockOnError::InsideTask)));
                assert!(catch_unwind(|| wait(async { 1 })).is_err());
                async { 2 }
            };
            assert_eq!(runtime.block_on(body), 2);
            assert_eq!(runtime.block_on(async |_cx: Cx| 3), 3);
            let panics = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(|_cx| -> std::future::Ready<u8> { panic!("no body") })
            }));
            assert!(panics.is_err());
            assert_eq!(runtime.block_on(async |_cx: Cx| 4), 4);
        });
    });
}
