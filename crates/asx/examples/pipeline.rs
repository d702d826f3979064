//! Three stages and two bounded channels: the slowest stage sets the pace, and memory is bounded.
//!
//! `cargo run -p asx --example pipeline`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use asx::channel::{Receiver, Sender};
use asx::prelude::*;

const ORDERS: usize = 1000;
const CAPACITY: usize = 4;

#[asx::main(workers = 2)]
async fn main(cx: &Cx) -> Result<(), Cancelled> {
    let (total, most) = pipeline(cx).await?;
    println!("{ORDERS} orders, {total} in all, never more than {most} on their way");
    Ok(())
}

/// Returns the sum of all orders, and the largest number of orders in progress.
pub(crate) async fn pipeline(cx: &Cx) -> Result<(usize, usize), Cancelled> {
    let (orders, to_price) = channel::bounded(CAPACITY);
    let (priced, mut to_ship) = channel::bounded(CAPACITY);
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    cx.scope(async |s| {
        s.task("source").spawn(async move |cx: Cx| {
            for order in 1..=ORDERS {
                // Backpressure: waits here while the later stages are busy.
                let Ok(permit) = orders.reserve(&cx).await else { break };
                counter.fetch_add(1, Relaxed);
                permit.send(order);
            }
            Ok(())
        });
        s.task("price").spawn(async move |cx: Cx| price(&cx, to_price, priced).await);

        // The last stage is this task, which may borrow its environment.
        let (mut total, mut most) = (0, 0);
        for done in 0.. {
            let Ok(price) = to_ship.recv(cx).await else { break };
            most = most.max(made.load(Relaxed) - done);
            total += price;
            cx.yield_now().await; // a slow stage
        }
        Ok((total, most))
    })
    .await
}

/// The second stage. It reserves a slot for the result before it takes an order, so that a cancel
/// loses no order.
async fn price(cx: &Cx, mut from: Receiver<usize>, to: Sender<usize>) -> Result<(), Cancelled> {
    while let Ok(permit) = to.reserve(cx).await {
        match from.recv(cx).await {
            Ok(order) => permit.send(3 * order),
            Err(_) => break, // no more orders: dropping the permit releases the slot
        }
    }
    Ok(())
}
