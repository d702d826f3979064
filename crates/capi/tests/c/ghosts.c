/* Ghost monitors: each misuse is counted, and reported with its place. */
#include "check.h"

struct seen {
    asx_ghost last;
    int count;
};

static void on_ghost(void *hook, const asx_ghost *ghost)
{
    struct seen *seen = (struct seen *)hook;
    seen->last = *ghost;
    ++seen->count;
}

#define REPORTED(kind_, status_, line_)                                                            \
    do {                                                                                           \
        EQUAL(seen.count, ++expected);                                                             \
        EQUAL(seen.last.kind, kind_);                                                              \
        EQUAL(seen.last.status, status_);                                                          \
        EQUAL(seen.last.line, line_);                                                              \
        EQUAL(seen.last.call != NULL, 1);                                                          \
    } while (0)

/* Forbidden behaviour FB-200 and FB-201: a borrow across a poll, and an exclusive one beside it. */
static int32_t borrows(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    uint64_t shared, exclusive;
    (void)ctx;
    OK(asx_borrow_begin(rt, 0, &shared));
    OK(asx_borrow_begin(rt, 1, &exclusive));
    OK(asx_borrow_end(rt, exclusive));
    ANSWERS(asx_borrow_end(rt, exclusive), ASX_E_INVALID_ARGUMENT);
    return ASX_POLL_READY; /* `shared` is still held */
}

static int32_t silent(asx_cx *cx, void *ctx)
{
    (void)ctx;
    return asx_checkpoint(cx) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
}

int main(void)
{
    struct seen seen;
    int expected = 0;
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    asx_task_id task;
    asx_timer_handle timer;
    asx_channel_id channel;
    asx_send_permit permit;
    asx_obligation_id obligation;
    asx_stats stats;

    memset(&seen, 0, sizeof seen);
    config.flags |= ASX_FLAG_GHOSTS;
    config.hook = &seen;
    config.ghost = on_ghost;
    rt = runtime_of(&config);
    task = spawn(rt, root(rt), silent, NULL);

    OK(asx_region_timer_arm(rt, root(rt), asx_after(MS), NULL, &timer));
    OK(asx_region_timer_cancel(rt, timer, NULL));
    OK(ASX_CALL(rt, asx_region_timer_cancel(rt, timer, NULL)));
    REPORTED(ASX_GHOST_DOUBLE_CANCEL, ASX_OK, __LINE__ - 1);
    EQUAL(strcmp(seen.last.call, has(ASX_FEATURE_NAMES) ? "asx_region_timer_cancel" : "asx"), 0);
    EQUAL(strcmp(seen.last.file, __FILE__), 0);
    EQUAL(seen.last.generation, timer.generation);
    OK(asx_task_cancel(rt, task, ASX_CANCEL_USER, NULL, NULL));
    OK(asx_task_cancel(rt, task, ASX_CANCEL_USER, NULL, NULL));
    REPORTED(ASX_GHOST_DOUBLE_CANCEL, ASX_OK, 0);
    EQUAL(seen.last.bits, task.bits);

    /* A call that is refused at the door is over too: the next one has no place. */
    ANSWERS(ASX_CALL(rt, asx_task_wake(rt, (asx_task_id){ 0, 0 })), ASX_E_INVALID_ARGUMENT);
    OK(asx_region_timer_cancel(rt, timer, NULL));
    REPORTED(ASX_GHOST_DOUBLE_CANCEL, ASX_OK, 0);
    ANSWERS(ASX_CALL(rt, asx_step(rt, ASX_NOW, 1, NULL)), ASX_E_INVALID_ARGUMENT);
    OK(asx_region_timer_cancel(rt, timer, NULL));
    REPORTED(ASX_GHOST_DOUBLE_CANCEL, ASX_OK, 0);

    OK(make_channel(rt, NULL, 1, 1, &channel));
    OK(asx_channel_try_reserve(SENDER(rt, channel), NULL, 0, &permit));
    OK(asx_send_permit_try_abort(&permit));
    ANSWERS(ASX_CALL(rt, asx_send_permit_send(&permit, "x")), ASX_E_OBLIGATION_ALREADY_RESOLVED);
    REPORTED(ASX_GHOST_PERMIT_REUSE, ASX_E_OBLIGATION_ALREADY_RESOLVED, __LINE__ - 1);
    OK(asx_channel_receiver_close(RECEIVER(rt, channel)));
    ANSWERS(asx_channel_try_send(SENDER(rt, channel), "x"), ASX_E_DISCONNECTED);
    REPORTED(ASX_GHOST_CLOSED_CHANNEL, ASX_E_DISCONNECTED, 0);

    OK(asx_obligation_reserve(rt, root(rt), &obligation));
    OK(asx_obligation_commit(rt, obligation));
    ANSWERS(asx_obligation_commit(rt, obligation), ASX_E_OBLIGATION_ALREADY_RESOLVED);
    REPORTED(ASX_GHOST_DOUBLE_RESOLVE, ASX_E_OBLIGATION_ALREADY_RESOLVED, 0);

    spawn(rt, root(rt), borrows, NULL);
    run(rt, 0);
    EQUAL(seen.count, expected += 3);
    EQUAL(seen.last.kind, ASX_GHOST_BORROW_ACROSS_POLL);

    OK(asx_task_release(rt, task));
    ANSWERS(asx_task_wake(rt, task), ASX_E_STALE_HANDLE);
    REPORTED(ASX_GHOST_STALE, ASX_E_STALE_HANDLE, 0);

    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.ghosts[ASX_GHOST_DOUBLE_CANCEL], 4);
    EQUAL(stats.ghosts[ASX_GHOST_BORROW_EPOCH], 2);
    EQUAL(stats.ghosts[ASX_GHOST_BORROW_ACROSS_POLL], 1);
    OK(asx_channel_sender_close(SENDER(rt, channel)));
    finish(rt);

    /* Without the flag nothing is watched. */
    config.flags = 0;
    rt = runtime_of(&config);
    OK(asx_region_timer_cancel(rt, timer, NULL));
    EQUAL(seen.count, expected);
    finish(rt);
    puts("ghosts: ok");
    return 0;
}
