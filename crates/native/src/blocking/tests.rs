use std::sync::mpsc;

use super::*;

type Closure = Box<dyn FnOnce() + Send>;

impl Job for Closure {
    fn run(self) {
        self();
    }
}

fn pool(most: usize, keep: Duration) -> Arc<Pool<Closure>> {
    Pool::keeping(most, "test", keep)
}

fn run(pool: &Arc<Pool<Closure>>, job: impl FnOnce() + Send + 'static) {
    assert!(pool.run(Box::new(job)).is_ok());
}

fn close(pool: &Pool<Closure>) {
    pool.close().for_each(|thread| thread.join().unwrap());
}

fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

#[test]
fn jobs_beyond_the_thread_limit_are_queued() {
    let pool = pool(1, KEEP);
    let (gate, closed) = mpsc::channel::<()>();
    let (sender, received) = mpsc::channel();
    run(&pool, move || assert!(closed.recv().is_err()));
    for n in 0..10 {
        let sender = sender.clone();
        run(&pool, move || sender.send(n).unwrap());
    }
    assert_eq!(pool.lock().threads.len(), 1);
    assert!(received.try_recv().is_err());
    drop(gate);
    assert_eq!(received.iter().take(10).collect::<Vec<_>>(), Vec::from_iter(0..10));
    close(&pool);
}

#[test]
fn blocked_jobs_do_not_keep_others_from_running() {
    let pool = pool(8, KEEP);
    let barrier = Arc::new(std::sync::Barrier::new(9));
    for _ in 0..8 {
        let barrier = barrier.clone();
        run(&pool, move || {
            barrier.wait();
        });
    }
    barrier.wait();
    assert_eq!(pool.lock().started, 8);
    close(&pool);
}

#[test]
fn a_waiting_thread_gets_the_next_job() {
    let pool = pool(8, KEEP);
    let (sender, received) = mpsc::channel();
    for n in 0..100 {
        let sender = sender.clone();
        run(&pool, move || sender.send(n).unwrap());
        assert_eq!(received.recv(), Ok(n));
        wait_until(|| pool.lock().waiting == 1);
    }
    assert_eq!(pool.lock().started, 1);
    close(&pool);
}

#[test]
fn an_idle_thread_ends_and_a_new_one_is_started_on_demand() {
    let pool = pool(1, Duration::from_millis(1));
    let (sender, received) = mpsc::channel();
    for n in 0..3 {
        let sender = sender.clone();
        run(&pool, move || sender.send(n).unwrap());
        assert_eq!(received.recv(), Ok(n));
        wait_until(|| pool.lock().threads.is_empty());
    }
    assert_eq!(pool.lock().started, 3);
    close(&pool);
}

#[test]
fn close_runs_queued_jobs_and_ends_the_threads() {
    let pool = pool(2, KEEP);
    let (sender, received) = mpsc::channel();
    for n in 0..50 {
        let sender = sender.clone();
        run(&pool, move || sender.send(n).unwrap());
    }
    drop(sender);
    close(&pool);
    assert_eq!(Arc::strong_count(&pool), 1);
    assert_eq!(received.iter().count(), 50);
    assert!(pool.run(Box::new(|| ())).is_err());
}
