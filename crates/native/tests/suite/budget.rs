//! Budgets of scopes, through the public interface.

use crate::common;

use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_runtime::{Cx, Policy, Scope, TaskError};
use common::{AppError, on_each};

#[test]
fn an_inner_scope_is_bounded_by_the_budget_of_the_outer_one() {
    on_each(|rt| {
        let kind = rt.block_on(async |cx: Cx| {
            cx.scope_with(Policy::FailFast)
                .budget(Budget { poll_quota: 20, ..Budget::INFINITE })
                .run(async |_: Scope<AppError>| {
                    cx.scope(async |s| {
                        let task = s.spawn(async |cx: Cx| -> Result<(), AppError> {
                            loop {
                                cx.checkpoint()?;
                                cx.yield_now().await;
                            }
                        });
                        match task.await {
                            Err(TaskError::Cancelled(cancelled)) => Ok(cancelled.kind()),
                            other => panic!("{other:?}"),
                        }
                    })
                    .await
                })
                .await
        });
        assert_eq!(kind.unwrap(), Kind::PollQuota);
    });
}
