//! The programs as threads, for shuttle and for loom: text that differs only in whose primitives
//! it names. Each use of one is a place where another thread may come in between.

/// The programs of one peer, by the module that has its primitives.
macro_rules! thread_programs {
    ($peer:ident) => {
        use $peer::sync::atomic::{AtomicU32, Ordering::SeqCst};
        use $peer::sync::{Arc, Condvar, Mutex};
        use $peer::thread;

        /// Runs so many threads to their end.
        fn together(threads: u32, body: impl Fn(u32) + Clone + Send + 'static) {
            let start = |nth| {
                let body = body.clone();
                thread::spawn(move || body(nth))
            };
            let threads: Vec<_> = (0..threads).map(start).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }

        fn lost_wakeup<const BUG: bool>() {
            let ready = Arc::new((Mutex::new(false), Condvar::new()));
            together(3, move |nth| {
                let (flag, told) = &*ready;
                if nth == 2 {
                    *flag.lock().unwrap() = true;
                    told.notify_all();
                } else if BUG {
                    let is_set = *flag.lock().unwrap();
                    if !is_set {
                        drop(told.wait(flag.lock().unwrap()).unwrap());
                    }
                } else {
                    let mut is_set = flag.lock().unwrap();
                    while !*is_set {
                        is_set = told.wait(is_set).unwrap();
                    }
                }
            });
        }

        fn ab_ba<const BUG: bool>() {
            let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
            together(3, move |nth| {
                let (first, second) = if BUG && nth == 2 { (1, 0) } else { (0, 1) };
                let mut one = locks[first].lock().unwrap();
                let mut two = locks[second].lock().unwrap();
                *one += 1;
                *two += 1;
            });
        }

        fn check_then_act<const BUG: bool>() {
            let count = Arc::new(AtomicU32::new(0));
            let counted = count.clone();
            together(3, move |_| {
                if BUG {
                    let before = count.load(SeqCst);
                    count.store(before + 1, SeqCst);
                } else {
                    count.fetch_add(1, SeqCst);
                }
            });
            assert_eq!(counted.load(SeqCst), 3, "an increment was lost");
        }

        fn needle<const BUG: bool>() {
            let turn = Arc::new(AtomicU32::new(0));
            let last = turn.clone();
            together(2, move |nth| {
                for mine in (nth..TURNS).step_by(2) {
                    if turn.compare_exchange(mine, mine + 1, SeqCst, SeqCst).is_err() {
                        break;
                    }
                }
            });
            assert!(!BUG || last.load(SeqCst) < TURNS, "the needle");
        }
    };
}
pub(crate) use thread_programs;
