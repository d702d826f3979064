use std::sync::mpsc;

use super::*;

type Sized<const N: usize> = [u8; N];

fn made<const N: usize>(byte: u8) -> NonNull<Sized<N>> {
    let cell = allocate::<Sized<N>>().cast::<Sized<N>>();
    // SAFETY: room for one, and no other thread has it.
    unsafe { cell.write([byte; N]) };
    cell
}

/// The number of blocks of a class that the lists cache.
fn cached(lists: &Lists, class: usize) -> usize {
    let List { count, spare, .. } = &lists.classes[class];
    count.get() + if spare.get().is_null() { 0 } else { magazine(class) }
}

/// The same for the calling thread.
fn cached_here(class: usize) -> usize {
    LISTS.with(|lists| cached(lists, class))
}

/// Takes a cached block, or allocates one and counts it.
fn take(lists: &Lists, class: usize, allocated: &mut usize) -> NonNull<Block> {
    lists.take(class).unwrap_or_else(|| {
        *allocated += 1;
        // SAFETY: not of size zero.
        NonNull::new(unsafe { alloc(layout(class)) }.cast()).unwrap()
    })
}

fn depots(most: usize) -> &'static Depots {
    Box::leak(Box::new(Depots::new(most)))
}

fn empty(depots: &Depots) {
    (0..CLASSES).for_each(|class| {
        let pops = std::iter::from_fn(|| depots.pop(class));
        pops.for_each(|full| free_all(class, full.as_ptr()));
    });
    assert_eq!(depots.bytes.load(Relaxed), 0);
}

/// A block serves cells of one class only, and live cells keep their content.
#[test]
fn free_block_is_reused_by_its_class_only() {
    let small = made::<40>(1);
    let large = made::<3000>(2);
    let live = made::<36>(3);
    // SAFETY: made above, and freed once.
    unsafe {
        free(small);
        free(large);
    }
    assert_eq!((cached_here(4), cached_here(5)), (1, 0));
    let other = made::<41>(4);
    assert_eq!(cached_here(4), 1, "another class");
    let again = made::<33>(5);
    assert_eq!((again.cast(), cached_here(4)), (small.cast::<u8>(), 0));
    // SAFETY: made above, and freed once.
    unsafe {
        assert_eq!(live.read(), [3; 36]);
        free(again);
        free(live);
        free(other);
    }
    assert_eq!((cached_here(4), cached_here(5)), (2, 1));
    let links = size_of::<Block>();
    assert_eq!(class(Layout::new::<u8>()), Some((links - 1) / STEP), "room for both links");
}

/// A thread that allocates and another that frees, with few live cells: the cache does not grow.
/// The class is one that no other test uses.
#[test]
#[cfg_attr(miri, ignore = "too many cells for an interpreter")]
fn cells_freed_on_another_thread_return_to_the_creator() {
    const SIZE: usize = 1992;
    const LIVE: usize = 4;
    let class = class(Layout::new::<Sized<SIZE>>()).unwrap();
    let (send, receive) = mpsc::sync_channel::<usize>(LIVE);
    let frees = std::thread::spawn(move || {
        for cell in receive {
            // SAFETY: made below, and freed once.
            unsafe { free(NonNull::new(cell as *mut Sized<SIZE>).unwrap()) };
        }
        cached_here(class)
    });
    for _ in 0..20_000 {
        send.send(made::<SIZE>(1).as_ptr() as usize).unwrap();
    }
    drop(send);
    let local = frees.join().unwrap() + cached_here(class);
    let in_depot = DEPOTS.lock(class).count * magazine(class);
    // One cell is with each thread besides those that are under way.
    let most = LIVE + 2 + 2 * 2 * magazine(class);
    assert!(local + in_depot <= most, "{local} + {in_depot} blocks are cached, not {most}");
}

/// The bound of the module documentation, for every class and several numbers of live cells.
#[test]
#[cfg_attr(miri, ignore = "too many cells for an interpreter")]
fn blocks_of_a_class_never_exceed_peak_and_local_magazines() {
    let depots = depots(MOST);
    for class in [1, 4, 30, 99, CLASSES - 1] {
        for live in [1, 10, 1000] {
            let [creator, worker, other] = [(); 3].map(|()| Lists::new(depots));
            let mut allocated = 0;
            for round in 0..20 {
                let cells: Vec<_> =
                    (0..live).map(|_| take(&creator, class, &mut allocated)).collect();
                let frees = if round % 3 == 0 { &other } else { &worker };
                cells.into_iter().for_each(|cell| frees.put(class, cell));
            }
            let most = live + 3 * 2 * magazine(class);
            assert!(allocated <= most, "class {class}, {live} live: {allocated} > {most}");
            for lists in [&creator, &worker, &other] {
                assert!(cached(lists, class) <= 2 * magazine(class));
            }
            drop((creator, worker, other));
            empty(depots);
        }
    }
}

/// A burst that is repeated on one thread is served from the cache.
#[test]
#[cfg_attr(miri, ignore = "too many cells for an interpreter")]
fn repeated_burst_is_allocated_once() {
    let depots = depots(MOST);
    let lists = Lists::new(depots);
    let class = 30;
    let mut allocated = 0;
    for _ in 0..30 {
        let cells: Vec<_> = (0..10_000).map(|_| take(&lists, class, &mut allocated)).collect();
        cells.into_iter().for_each(|cell| lists.put(class, cell));
    }
    assert_eq!(allocated, 10_000);
    drop(lists);
    empty(depots);
}

/// After a burst, a steady exchange between threads releases magazines it does not need.
#[test]
#[cfg_attr(miri, ignore = "too many cells for an interpreter")]
fn surplus_of_a_burst_is_released() {
    let depots = depots(MOST);
    let [creator, worker] = [(); 2].map(|()| Lists::new(depots));
    let class = 30;
    let burst: Vec<_> = (0..10_000).map(|_| take(&creator, class, &mut 0)).collect();
    burst.into_iter().for_each(|cell| worker.put(class, cell));
    let before = depots.lock(class).count;
    assert!(before > 300, "{before}");
    for _ in 0..100_000 {
        worker.put(class, take(&creator, class, &mut 0));
    }
    let after = depots.lock(class).count;
    assert!(after <= 4, "{after} of {before} magazines are left");
    drop((creator, worker));
    empty(depots);
}

#[test]
#[cfg_attr(miri, ignore = "too many cells for an interpreter")]
fn depots_keep_at_most_their_limit() {
    let class = CLASSES - 1;
    let bytes = magazine(class) * size(class);
    let depots = depots(3 * bytes);
    let lists = Lists::new(depots);
    let cells: Vec<_> = (0..100).map(|_| take(&lists, class, &mut 0)).collect();
    cells.into_iter().for_each(|cell| lists.put(class, cell));
    assert_eq!(depots.bytes.load(Relaxed), 3 * bytes);
    assert!(cached(&lists, class) <= 2 * magazine(class));
    drop(lists);
    empty(depots);
}

#[test]
fn cells_are_freed_while_their_thread_ends() {
    struct Late(Cell<Option<NonNull<Sized<100>>>>);
    impl Drop for Late {
        fn drop(&mut self) {
            // SAFETY: made below, and freed once.
            self.0.take().into_iter().for_each(|cell| unsafe { free(cell) });
            // SAFETY: made and freed here.
            unsafe { free(made::<100>(2)) };
        }
    }
    thread_local!(static LATE: Late = const { Late(Cell::new(None)) });
    // Thread-locals are dropped in the order they were used first, or in reverse.
    let [early, late] = [false, true].map(|lists_first| {
        std::thread::spawn(move || {
            if lists_first {
                LISTS.with(|_| ());
            }
            LATE.with(|late| late.0.set(Some(made::<100>(1))));
        })
    });
    assert!(early.join().is_ok() && late.join().is_ok());
}
