//! The service of the tour: a shop. Customers order over a bounded channel and wait for the answer,
//! clerks serve them from one stock, and a deadline keeps anybody from waiting for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use asx::channel::oneshot::Reply;
use asx::channel::{Receiver, oneshot};
use asx::prelude::*;
use asx::sync::Mutex;

/// How large the shop is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) customers: u32,
    /// Of each customer.
    pub(crate) orders: u32,
    pub(crate) clerks: u32,
    pub(crate) stock: u32,
    /// Clerks look at the stock, let go of it, and take from it later.
    pub(crate) careless: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Books {
    pub(crate) sold: u32,
    pub(crate) refused: u32,
    pub(crate) left: u32,
}

#[derive(Clone, Copy)]
struct Stock {
    left: u32,
    sold: u32,
}

struct Order {
    reply: Reply<bool>,
}

type Orders = Arc<Mutex<Receiver<Order>>>;

/// Runs the shop until every customer has been served. Panics if the books are wrong: nobody was
/// sold what was not there, and everybody got an answer.
pub(crate) async fn run(cx: &Cx, plan: Plan, served: &Arc<AtomicU64>) -> Result<Books, Cancelled> {
    let stock = Arc::new(Mutex::new(Stock { left: plan.stock, sold: 0 }));
    let (counter, queue) = channel::bounded(2 * plan.clerks.max(1) as usize);
    let queue = Arc::new(Mutex::new(queue));
    let bought = cx
        .scope(async |s: Scope<Cancelled>| {
            for n in 0..plan.clerks {
                let queue = queue.clone();
                let stock = stock.clone();
                s.task(format!("clerk {n}")).spawn(async move |cx: Cx| {
                    while let Some(order) = next(&cx, &queue).await? {
                        let sold = sell(&cx, &stock, plan.careless).await?;
                        // Who has gone away does not mind.
                        let _ = order.reply.send(sold);
                    }
                    Ok(())
                });
            }
            let mut customers = Vec::new();
            for n in 0..plan.customers {
                let counter = counter.clone();
                let served = served.clone();
                let customer = s.task(format!("customer {n}"));
                customers.push(customer.spawn(async move |cx: Cx| {
                    let mut bought = 0;
                    for _ in 0..plan.orders {
                        let (reply, mut answer) = oneshot();
                        // Reserved first: a cancel while waiting loses no order.
                        let Ok(permit) = counter.reserve(&cx).await else { break };
                        permit.send(Order { reply });
                        let patience = Duration::from_secs(60);
                        let wait = async |cx| Ok::<_, Cancelled>(answer.recv(cx).await);
                        let answer = cx.timeout(patience, wait).await;
                        bought += u32::from(matches!(answer, Ok(Ok(true))));
                        served.fetch_add(1, Relaxed);
                    }
                    Ok::<u32, Cancelled>(bought)
                }));
            }
            drop(counter);
            let mut bought = 0;
            for customer in customers {
                bought += customer.await.unwrap_or(0);
            }
            Ok(bought)
        })
        .await?;
    let Stock { left, sold } = *stock.lock(cx).await?;
    let books = Books { sold, refused: plan.customers * plan.orders - sold, left };
    assert_eq!(books.sold + books.left, plan.stock, "the books are wrong: {books:?}");
    // Who was called away after the sale has paid all the same.
    assert!(bought <= sold, "{bought} were bought, of {sold} sold");
    Ok(books)
}

/// The next order; none once all customers have left.
async fn next(cx: &Cx, queue: &Orders) -> Result<Option<Order>, Cancelled> {
    queue.lock(cx).await?.next(cx).await
}

/// Sells one of the stock, if there is one.
async fn sell(cx: &Cx, stock: &Mutex<Stock>, careless: bool) -> Result<bool, Cancelled> {
    if careless {
        let Stock { left, sold } = *stock.lock(cx).await?;
        cx.yield_now().await; // wraps it up
        if left > 0 {
            *stock.lock(cx).await? = Stock { left: left - 1, sold: sold + 1 };
        }
        return Ok(left > 0);
    }
    let mut stock = stock.lock(cx).await?;
    cx.yield_now().await;
    let any = stock.left > 0;
    if any {
        *stock = Stock { left: stock.left - 1, sold: stock.sold + 1 };
    }
    Ok(any)
}
