/* The one call that other threads and signal handlers may make, and what the others answer them. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <signal.h>

enum { THREADS = 4, WAKES = 2000 };

static int32_t counts(asx_cx *cx, void *ctx)
{
    ++*(unsigned *)ctx;
    return asx_checkpoint(cx) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
}

struct waker {
    asx_runtime *rt;
    asx_task_id task;
    asx_status affinity;
};

static void *wakes(void *ctx)
{
    struct waker *waker = (struct waker *)ctx;
    int i;
    for (i = 0; i < WAKES; ++i)
        OK(asx_external_wake(waker->rt, waker->task));
    waker->affinity = asx_task_wake(waker->rt, waker->task);
    /* Arguments come before the thread: there is no clock to ask. */
    ANSWERS(asx_step(waker->rt, ASX_NOW, 1, NULL), ASX_E_INVALID_ARGUMENT);
    return NULL;
}

static void from_threads(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    asx_stats stats;
    struct waker wakers[THREADS];
    pthread_t threads[THREADS];
    unsigned polls[THREADS] = { 0 };
    int i, rounds;

    config.flags |= ASX_FLAG_GHOSTS;
    rt = runtime_of(&config);
    for (i = 0; i < THREADS; ++i) {
        wakers[i].rt = rt;
        wakers[i].task = spawn(rt, root(rt), counts, &polls[i]);
    }
    run(rt, 0);
    for (i = 0; i < THREADS; ++i)
        EQUAL(pthread_create(&threads[i], NULL, wakes, &wakers[i]), 0);
    for (rounds = 0; rounds < 1000; ++rounds)
        OK(asx_step(rt, 0, 16, NULL));
    for (i = 0; i < THREADS; ++i)
        EQUAL(pthread_join(threads[i], NULL), 0);
    run(rt, 0);
    for (i = 0; i < THREADS; ++i) {
        /* At least the poll after the last wake, at most one for each. */
        EQUAL(polls[i] >= 2 && polls[i] <= 1 + WAKES, 1);
        EQUAL(wakers[i].affinity, ASX_E_AFFINITY_VIOLATION);
    }
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.ghosts[ASX_GHOST_AFFINITY], THREADS);
    finish(rt);
}

static asx_runtime *signalled;
static asx_task_id signalled_task;

static void on_signal(int number)
{
    (void)number;
    OK(asx_external_wake(signalled, signalled_task));
}

static void from_signals(void)
{
    unsigned polls = 0, before;
    int i;
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    signalled = runtime();
    signalled_task = spawn(signalled, root(signalled), counts, &polls);
    run(signalled, 0);
    EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
    for (i = 0; i < 100; ++i) {
        before = polls;
        EQUAL(raise(SIGUSR1), 0);
        EQUAL(raise(SIGUSR1), 0);
        run(signalled, 0);
        EQUAL(polls, before + 1);
    }
    ANSWERS(asx_external_wake(signalled, (asx_task_id){ 0, 0 }), ASX_E_INVALID_ARGUMENT);
    ANSWERS(asx_external_wake(NULL, signalled_task), ASX_E_INVALID_ARGUMENT);
    ++signalled_task.generation;
    ANSWERS(asx_external_wake(signalled, signalled_task), ASX_E_STALE_HANDLE);
    finish(signalled);
}

static int32_t once(asx_cx *cx, void *ctx)
{
    (void)cx;
    (void)ctx;
    return ASX_POLL_READY;
}

/* A wake may come too late: nothing happens to who has gone, nor to who comes after. */
static void too_late(void)
{
    asx_runtime *rt = runtime();
    asx_task_id gone = spawn(rt, root(rt), once, NULL), next;
    asx_stats stats;
    unsigned polls = 0;

    EQUAL(run(rt, 0), 1);
    OK(asx_external_wake(rt, gone));
    OK(asx_task_release(rt, gone));
    OK(asx_external_wake(rt, gone));
    EQUAL(run(rt, 0), 0);
    next = spawn(rt, root(rt), counts, &polls);
    ANSWERS(asx_external_wake(rt, gone), ASX_E_STALE_HANDLE);
    EQUAL(run(rt, 0), 1);
    EQUAL(run(rt, 0), 0);
    OK(asx_external_wake(rt, next));
    EQUAL(run(rt, 0), 1);
    EQUAL(polls, 2);
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.external_wakes, 1);
    finish(rt);
}

int main(void)
{
    from_threads();
    from_signals();
    too_late();
    puts("threads: ok");
    return 0;
}
