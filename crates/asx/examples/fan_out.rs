//! Many requests at once, with typed errors: the first failure cancels the rest, or none does.
//!
//! `cargo run -p asx --example fan_out`

use asx::Policy;
use asx::prelude::*;

/// Why a request failed. A cancel is one of the reasons, so that `?` works on all operations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FetchError {
    Cancelled,
    Missing(&'static str),
}

impl From<Cancelled> for FetchError {
    fn from(_: Cancelled) -> Self {
        FetchError::Cancelled
    }
}

#[asx::main(workers = 2)]
async fn main(cx: &Cx) -> Result<(), FetchError> {
    println!("all there: {:?}", all(cx, &["home", "news"]).await);
    println!("one missing: {:?}", all(cx, &["home", "missing", "slow"]).await);
    println!("each on its own: {:?}", each(cx, &["home", "missing"]).await);
    Ok(())
}

/// Returns all pages, or the first error after the rest was cancelled and has ended.
pub(crate) async fn all(cx: &Cx, pages: &[&'static str]) -> Result<Vec<usize>, FetchError> {
    cx.scope(async |s| {
        let start = |page| s.task(page).spawn(async move |cx: Cx| fetch(&cx, page).await);
        let tasks: Vec<_> = pages.iter().copied().map(start).collect();
        let mut sizes = Vec::new();
        for task in tasks {
            match task.await {
                Ok(size) => sizes.push(size),
                // This task failed, or it was cancelled because another one failed.
                Err(TaskError::Err(error)) => return Err(error),
                Err(TaskError::Cancelled(cancelled)) => return Err(cancelled.into()),
                Err(TaskError::Panicked(panic)) => panic.resume(),
            }
        }
        Ok(sizes)
    })
    .await // the scope returns the first cause, whatever its body returned
}

/// Returns the result for each page.
pub(crate) async fn each(cx: &Cx, pages: &[&'static str]) -> Vec<Result<usize, FetchError>> {
    let body = async |s: Scope<FetchError>| {
        let start = |page| s.task(page).spawn(async move |cx: Cx| fetch(&cx, page).await);
        let tasks: Vec<_> = pages.iter().copied().map(start).collect();
        let mut results = Vec::new();
        for task in tasks {
            results.push(match task.await {
                Ok(size) => Ok(size),
                Err(TaskError::Err(error)) => Err(error),
                Err(_) => Err(FetchError::Cancelled),
            });
        }
        Ok(results)
    };
    cx.scope_with(Policy::CollectAll).run(body).await.unwrap_or_default()
}

/// Simulates the network.
async fn fetch(cx: &Cx, page: &'static str) -> Result<usize, FetchError> {
    match page {
        "missing" => Err(FetchError::Missing(page)),
        "slow" => Ok(cx.sleep(60.minutes()).await.map(|()| 0)?), // cancelled when another fails
        page => {
            cx.yield_now().await;
            Ok(page.len())
        }
    }
}
