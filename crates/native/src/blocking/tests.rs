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

fn until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

#[test]
fn beyond_the_limit_jobs_wait_their_turn() {
    let pool = pool(1, KEEP);
    let (gate, closed) = mpsc::channel::<()>();
    let (say, said) = mpsc::channel();
    run(&pool, move || assert!(closed.recv().is_err()));
    for n in 0..10 {
        let say = say.clone();
        run(&pool, move || say.send(n).unwrap());
    }
    assert_eq!(pool.lock().threads.len(), 1);
    assert!(said.try_recv().is_err());
    drop(gate);
    assert_eq!(said.iter().take(10).collect::<Vec<_>>(), Vec::from_iter(0..10));
    close(&pool);
}

#[test]
fn jobs_that_block_do_not_keep_others_from_running() {
    let pool = pool(8, KEEP);
    let meet = Arc::new(std::sync::Barrier::new(9));
    for _ in 0..8 {
        let meet = meet.clone();
        run(&pool, move || {
            meet.wait();
        });
    }
    meet.wait();
    assert_eq!(pool.lock().started, 8);
    close(&pool);
}

#[test]
fn a_waiting_thread_gets_the_next_job() {
    let pool = pool(8, KEEP);
    let (say, said) = mpsc::channel();
    for n in 0..100 {
        let say = say.clone();
        run(&pool, move || say.send(n).unwrap());
        assert_eq!(said.recv(), Ok(n));
        until(|| pool.lock().waiting == 1);
    }
    assert_eq!(pool.lock().started, 1);
    close(&pool);
}

#[test]
fn a_thread_without_work_ends_and_another_comes_when_needed() {
    let pool = pool(1, Duration::from_millis(1));
    let (say, said) = mpsc::channel();
    for n in 0..3 {
        let say = say.clone();
        run(&pool, move || say.send(n).unwrap());
        assert_eq!(said.recv(), Ok(n));
        until(|| pool.lock().threads.is_empty());
    }
    assert_eq!(pool.lock().started, 3);
    close(&pool);
}

#[test]
fn a_close_runs_what_is_queued_and_waits_for_the_threads() {
    let pool = pool(2, KEEP);
    let (say, said) = mpsc::channel();
    for n in 0..50 {
        let say = say.clone();
        run(&pool, move || say.send(n).unwrap());
    }
    drop(say);
    close(&pool);
    assert_eq!(Arc::strong_count(&pool), 1);
    assert_eq!(said.iter().count(), 50);
    assert!(pool.run(Box::new(|| ())).is_err());
}
