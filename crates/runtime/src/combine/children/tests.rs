use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};

use asx_kernel::arena::Key;
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::ids::RegionId;
use asx_kernel::time::Time;

use super::Children;
use asx_task::Cx;

/// Counts its wakes.
#[derive(Default)]
struct Count(AtomicUsize);

impl Count {
    fn wakes(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What children show of themselves: their wakers, and who was polled.
#[derive(Default)]
struct Seen {
    wakers: RefCell<Vec<Waker>>,
    polled: RefCell<Vec<usize>>,
}

/// A child that ends with its second poll.
fn child(seen: &Rc<Seen>, id: usize, again: bool) -> impl Future<Output = ()> + use<> {
    let seen = seen.clone();
    let mut polls = 0;
    poll_fn(move |context| {
        seen.polled.borrow_mut().push(id);
        seen.wakers.borrow_mut().push(context.waker().clone());
        polls += 1;
        if again {
            context.waker().wake_by_ref();
        }
        if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
    })
}

/// Polls once by this waker: who was polled, who ended.
fn round<F: Future<Output = ()>>(
    children: &mut Children<F>,
    cx: &Cx,
    waker: &Arc<Count>,
    seen: &Seen,
) -> (Vec<usize>, Vec<u64>) {
    let mut ended = Vec::new();
    children.watch(cx, &Waker::from(waker.clone()));
    children.poll_round(|id, end| {
        end.unwrap();
        ended.push(id);
        false
    });
    (seen.polled.take(), ended)
}

#[test]
fn a_wake_of_a_child_wakes_the_last_waker_once() {
    let (cx, _) = Cx::loose();
    let [first, second] = [(); 2].map(|()| Arc::<Count>::default());
    let seen = Rc::<Seen>::default();
    let mut children = Children::new();
    (0..3).for_each(|id| children.insert(id, child(&seen, id as usize, false)));
    assert_eq!(round(&mut children, &cx, &first, &seen), (vec![0, 1, 2], vec![]));
    seen.wakers.borrow()[1].wake_by_ref();
    seen.wakers.borrow()[1].wake_by_ref();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert_eq!(round(&mut children, &cx, &second, &seen), (vec![1], vec![1]));
    seen.wakers.borrow()[2].wake_by_ref();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(round(&mut children, &cx, &second, &seen), (vec![2], vec![2]));
    assert_eq!(round(&mut children, &cx, &second, &seen), (vec![], vec![]));
    assert!(!children.is_empty());
}

#[test]
fn a_child_that_wakes_itself_waits_for_the_next_round() {
    let (cx, _) = Cx::loose();
    let seen = Rc::<Seen>::default();
    let count = Arc::default();
    let mut children = Children::new();
    children.insert(0, child(&seen, 0, true));
    assert_eq!(round(&mut children, &cx, &count, &seen), (vec![0], vec![]));
    assert_eq!(count.wakes(), 1);
    assert_eq!(round(&mut children, &cx, &count, &seen), (vec![0], vec![0]));
    // It woke itself in its last poll, too: nobody is there any more.
    assert_eq!(round(&mut children, &cx, &count, &seen), (vec![], vec![]));
}

#[test]
fn a_cancel_around_the_whole_is_a_round_of_all_once() {
    let (cx, cancel) = Cx::loose();
    let seen = Rc::<Seen>::default();
    let count = Arc::default();
    let mut children = Children::new();
    let endless = |id| {
        let seen = seen.clone();
        poll_fn(move |_| {
            seen.polled.borrow_mut().push(id);
            Poll::<()>::Pending
        })
    };
    (0..3).for_each(|id| children.insert(id, endless(id as usize)));
    assert_eq!(round(&mut children, &cx, &count, &seen).0, [0, 1, 2]);
    assert!(round(&mut children, &cx, &count, &seen).0.is_empty());
    let region = RegionId(Key { generation: 1, index: 0 });
    cancel(Reason::new(Kind::User, region, Time::ZERO));
    assert_eq!(round(&mut children, &cx, &count, &seen).0, [0, 1, 2]);
    assert!(round(&mut children, &cx, &count, &seen).0.is_empty());
}
