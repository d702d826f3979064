/* Watchdogs that cancel, then end one task by force, and tell a hook of both. */
#include "check.h"

static asx_task_id told_task[8];
static int32_t told_stage[8];
static uint64_t told_at[8];
static int told, cleaned, dropped, siblings;
static uint64_t now_is;

static void on_watchdog(void *hook, asx_runtime *rt, asx_task_id task, int32_t stage)
{
    asx_region_id region;
    EQUAL(*(int *)hook, 42);
    ANSWERS(asx_region_root(rt, &region), ASX_E_REENTRANT);
    ANSWERS(asx_step(rt, 0, 1, NULL), ASX_E_REENTRANT);
    EQUAL(told < 8, 1);
    told_task[told] = task;
    told_stage[told] = stage;
    told_at[told++] = now_is;
}

static void on_drop(void *ctx)
{
    (void)ctx;
    ++dropped;
}

/* Looks at no cancel, ever: forbidden behaviour FB-203. */
static int32_t deaf(asx_cx *cx, void *ctx)
{
    (void)cx;
    (void)ctx;
    return ASX_POLL_PENDING;
}

static int32_t heeds(asx_cx *cx, void *ctx)
{
    (void)ctx;
    return asx_checkpoint(cx) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
}

static int32_t kicks(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    (void)ctx;
    ++siblings;
    OK(asx_task_kick_watchdog(rt, task));
    return ASX_POLL_PENDING;
}

static int32_t cleans(asx_cx *cx, void *ctx)
{
    (void)cx;
    (void)ctx;
    ++cleaned;
    return ASX_POLL_READY;
}

static int32_t never_cleans(asx_cx *cx, void *ctx)
{
    (void)cx;
    (void)ctx;
    ++cleaned;
    return ASX_POLL_PENDING;
}

static int hook_data = 42;

static asx_runtime *watched(uint64_t span, uint64_t grace)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    config.hook = &hook_data;
    config.watchdog = on_watchdog;
    config.watchdog_ns = span;
    config.watchdog_grace_ns = grace;
    told = cleaned = dropped = siblings = 0;
    return runtime_of(&config);
}

static void step_at(asx_runtime *rt, uint64_t now)
{
    now_is = now;
    run(rt, now);
}

static asx_task_id spawn_with(asx_runtime *rt, asx_poll_fn poll, uint64_t span, uint64_t grace)
{
    asx_task_options options = ASX_TASK_OPTIONS_INIT;
    asx_body body = asx_poll_with(poll, NULL);
    asx_task_id task;
    body.drop = on_drop;
    options.flags = 0;
    options.watchdog_ns = span;
    options.watchdog_grace_ns = grace;
    OK(asx_task_spawn(rt, root(rt), body, &options, &task));
    return task;
}

static void is_told(int at, asx_task_id task, int32_t stage, uint64_t when)
{
    EQUAL(told > at, 1);
    EQUAL(asx_same_task(told_task[at], task), 1);
    EQUAL(told_stage[at], stage);
    EQUAL(told_at[at], when);
}

static asx_stats stats_of(asx_runtime *rt)
{
    asx_stats stats;
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    return stats;
}

/* One task is ended, with its cleanup; its sibling goes on. */
static uint64_t by_force(void)
{
    asx_runtime *rt = watched(ASX_NONE, ASX_NONE);
    asx_task_id lost = spawn_with(rt, deaf, 100, 30);
    asx_task_id alive = spawn_with(rt, kicks, 100, 30);
    asx_task_info info;
    uint64_t next, now, end;
    OK(asx_task_push_cleanup(rt, lost, asx_poll_with(cleans, NULL)));
    for (now = 0; now < 100; now += 50) {
        step_at(rt, now);
        OK(asx_task_wake(rt, alive));
    }
    step_at(rt, 99);
    EQUAL(told, 0);
    OK(asx_next_deadline(rt, &next));
    EQUAL(next, 100);
    step_at(rt, 100);
    EQUAL(told, 1);
    is_told(0, lost, ASX_WATCHDOG_CANCELLED, 100);
    EQUAL(dropped, 0);
    /* A kick comes too late now, and so does another watchdog. */
    OK(asx_task_kick_watchdog(rt, lost));
    OK(asx_task_set_watchdog(rt, lost, ASX_NONE, ASX_NONE));
    OK(asx_next_deadline(rt, &next));
    EQUAL(next, 130);
    OK(asx_task_wake(rt, alive));
    step_at(rt, 129);
    EQUAL(told, 1);
    EQUAL(cleaned, 0);
    step_at(rt, 130);
    EQUAL(told, 2);
    is_told(1, lost, ASX_WATCHDOG_FORCED, 130);
    EQUAL(cleaned, 1);
    EQUAL(dropped, 1);
    EQUAL(outcome(rt, lost), ASX_OUTCOME_CANCELLED);
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_task_get_info(rt, lost, &info));
    EQUAL(info.overrun, 1);
    EQUAL(info.kind, ASX_CANCEL_TIMEOUT);
    OK(asx_task_get_info(rt, alive, &info));
    EQUAL(info.state, ASX_TASK_RUNNING);
    EQUAL(stats_of(rt).watchdogs, 1);
    EQUAL(stats_of(rt).watchdogs_forced, 1);
    EQUAL(stats_of(rt).cleanups_cut, 0);
    verify(rt);
    end = digest(rt);
    OK(asx_runtime_destroy(rt));
    return end;
}

/* Who stops in time is not forced; without a grace nobody is. */
static void in_time(void)
{
    asx_runtime *rt = watched(100, ASX_NONE);
    asx_task_id stops = spawn_with(rt, heeds, 100, 30);
    asx_task_id deaf_one = spawn(rt, root(rt), deaf, NULL); /* as configured: no grace */
    uint64_t next = 0;
    step_at(rt, 0);
    step_at(rt, 100);
    EQUAL(outcome(rt, stops), ASX_OUTCOME_CANCELLED);
    EQUAL(told, 2);
    is_told(0, stops, ASX_WATCHDOG_CANCELLED, 100);
    is_told(1, deaf_one, ASX_WATCHDOG_CANCELLED, 100);
    ANSWERS(asx_next_deadline(rt, &next), ASX_E_EMPTY);
    step_at(rt, 100000);
    EQUAL(told, 2);
    EQUAL(stats_of(rt).watchdogs_forced, 0);
    OK(asx_runtime_destroy(rt));
}

/* A cleanup entry that waits is cut off when the grace is over once more, and that is counted. */
static void cleanup_is_bounded(uint64_t grace)
{
    asx_runtime *rt = watched(10, grace);
    asx_task_id lost = spawn(rt, root(rt), deaf, NULL);
    OK(asx_task_push_cleanup(rt, lost, asx_poll_with(never_cleans, NULL)));
    step_at(rt, 0);
    step_at(rt, 10);
    step_at(rt, 10 + grace);
    EQUAL(told, 2);
    is_told(1, lost, ASX_WATCHDOG_FORCED, 10 + grace);
    EQUAL(cleaned, 1);
    step_at(rt, 10 + 2 * grace + 1);
    EQUAL(told, 2);
    EQUAL(outcome(rt, lost), ASX_OUTCOME_CANCELLED);
    EQUAL(stats_of(rt).cleanups_cut, 1);
    verify(rt);
    OK(asx_runtime_destroy(rt));
}

/* A late step finds everything due, in order, and a task that releases itself is told of too. */
static void late(void)
{
    asx_runtime *rt = watched(ASX_NONE, ASX_NONE);
    asx_task_options options = ASX_TASK_OPTIONS_INIT;
    asx_task_id lost;
    int32_t ended;
    options.flags = ASX_TASK_AUTO_RELEASE;
    options.watchdog_ns = 10;
    options.watchdog_grace_ns = 0;
    OK(asx_task_spawn(rt, root(rt), asx_poll_with(deaf, NULL), &options, &lost));
    step_at(rt, 0);
    step_at(rt, 1000);
    EQUAL(told, 2);
    is_told(0, lost, ASX_WATCHDOG_CANCELLED, 1000);
    is_told(1, lost, ASX_WATCHDOG_FORCED, 1000);
    ANSWERS(asx_task_outcome(rt, lost, &ended), ASX_E_STALE_HANDLE);
    finish(rt);
}

int main(void)
{
    EQUAL(by_force() == by_force(), 1);
    in_time();
    cleanup_is_bounded(5);
    cleanup_is_bounded(0);
    late();
    puts("watchdogs: ok");
    return 0;
}
