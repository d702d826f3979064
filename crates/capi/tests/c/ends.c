/* How tasks and regions end: by force, with their runtime, by a jump out of a callback; and what can
 * still be read afterwards. */
#include "check.h"
#include <setjmp.h>

/* What ran, in order, and what was dropped. */
static char ran[64];
static int drops;

static void note(const char *name)
{
    strncat(ran, name, sizeof ran - strlen(ran) - 1);
}

static void reset(void)
{
    ran[0] = 0;
    drops = 0;
}

static void dropped(void *ctx)
{
    (void)ctx;
    ++drops;
}

#define RAN(wanted)                                                                                \
    do {                                                                                           \
        if (strcmp(ran, wanted) != 0) {                                                            \
            fprintf(stderr, "%s:%d: ran \"%s\", not \"%s\"\n", __FILE__, __LINE__, ran, wanted);   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int32_t cleans(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    int32_t cancelled = 7;
    OK(asx_task_is_cancelled(rt, task, &cancelled));
    EQUAL(cancelled, 0); /* shielded */
    note(ctx);
    return ASX_POLL_READY;
}

static int32_t waits_for_ever(asx_cx *cx, void *ctx)
{
    (void)cx;
    note(ctx);
    return ASX_POLL_PENDING;
}

static int32_t wakes_itself(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    ++*(int *)ctx;
    OK(asx_task_wake(rt, task));
    return ASX_POLL_PENDING;
}

static asx_body droppable(asx_poll_fn poll, const char *ctx)
{
    asx_body body;
    body.poll = poll;
    body.ctx = (void *)ctx;
    body.drop = dropped;
    return body;
}

static asx_task_id deaf_with(asx_runtime *rt, asx_region_id region, const char *first, const char *second)
{
    asx_task_id task;
    OK(asx_task_spawn(rt, region, droppable(waits_for_ever, "b"), NULL, &task));
    if (first)
        OK(asx_task_push_cleanup(rt, task, droppable(cleans, first)));
    if (second)
        OK(asx_task_push_cleanup(rt, task, droppable(cleans, second)));
    return task;
}

static uint64_t cut(asx_runtime *rt)
{
    asx_stats stats;
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    return stats.cleanups_cut;
}

static uint64_t overruns(asx_runtime *rt, asx_task_id task)
{
    asx_event events[64];
    size_t count, i;
    uint64_t from = 0, found = 0;
    do {
        OK(asx_journal_read(rt, from, events, 64, &count));
        for (i = 0; i < count; ++i) {
            from = events[i].seq + 1;
            if (strcmp(asx_event_name(events[i].kind), "cleanup_overrun") == 0
                && events[i].task == task.generation)
                ++found;
        }
    } while (count > 0);
    return found;
}

/* A task that never looks is ended by force; its stack runs before it is Completed. */
static void forced(uint64_t grace)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    asx_task_id task;
    asx_task_info info;

    reset();
    OK(asx_region_open(rt, root(rt), NULL, &region));
    task = deaf_with(rt, region, "1", "2");
    run(rt, 0);
    OK(asx_region_close(rt, region, ASX_CANCEL_USER, NULL, grace, NULL));
    run(rt, grace);
    RAN("b21");
    EQUAL(drops, 3);
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_task_get_info(rt, task, &info));
    EQUAL(info.state, ASX_TASK_COMPLETED);
    EQUAL(info.outcome, ASX_OUTCOME_CANCELLED);
    EQUAL(info.overrun, 1);
    EQUAL(overruns(rt, task), has(ASX_FEATURE_JOURNAL) ? 1 : 0);
    EQUAL(cut(rt), 0);
    verify(rt);
    finish(rt);
}

/* The allowance bounds what runs, the grace what waits. Both are on record. */
static void forced_and_cut_off(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    asx_task_id waits, loops;
    int polls = 0;
    asx_body loop = { wakes_itself, NULL, NULL };

    reset();
    loop.ctx = &polls;
    OK(asx_region_open(rt, root(rt), NULL, &region));
    waits = deaf_with(rt, region, "1", NULL);
    OK(asx_task_push_cleanup(rt, waits, droppable(waits_for_ever, "w")));
    loops = spawn(rt, region, waits_for_ever, "l");
    OK(asx_task_push_cleanup(rt, loops, loop));
    run(rt, 0);
    OK(asx_region_close(rt, region, ASX_CANCEL_SHUTDOWN, NULL, MS, NULL));
    run(rt, MS);
    EQUAL(polls, 50);
    EQUAL(outcome(rt, loops), ASX_OUTCOME_CANCELLED);
    EQUAL(overruns(rt, loops), has(ASX_FEATURE_JOURNAL) ? 2 : 0);
    EQUAL(cut(rt), 1);
    RAN("blw");
    EQUAL(asx_region_check(rt, region, ASX_REGION_FINALIZING), ASX_E_INCOMPLETE_CHILDREN);
    run(rt, 2 * MS);
    RAN("blw");
    EQUAL(outcome(rt, waits), ASX_OUTCOME_CANCELLED);
    EQUAL(overruns(rt, waits), has(ASX_FEATURE_JOURNAL) ? 2 : 0);
    EQUAL(cut(rt), 3);
    EQUAL(drops, 3);
    verify(rt);
    finish(rt);
}

/* Ends itself by force while it is polled: the stack runs after that poll. */
static int32_t forces_itself(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    OK(asx_task_push_cleanup(rt, task, droppable(cleans, "1")));
    OK(asx_region_close(rt, *(asx_region_id *)ctx, ASX_CANCEL_USER, NULL, 0, NULL));
    OK(asx_fire_timers(rt, NULL));
    OK(asx_fire_timers(rt, NULL));
    RAN("");
    return ASX_POLL_PENDING;
}

static void forced_in_its_poll(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    asx_task_id task;

    reset();
    OK(asx_region_open(rt, root(rt), NULL, &region));
    task = spawn(rt, region, forces_itself, &region);
    run(rt, 0);
    RAN("1");
    EQUAL(drops, 1);
    EQUAL(outcome(rt, task), ASX_OUTCOME_CANCELLED);
    verify(rt);
    finish(rt);
}

/* Stacks of tasks that live when their runtime is destroyed run, those of their children too;
 * finalizers as well. What waits, or goes on for ever, is cut off. */
static void destroyed(int32_t profile)
{
    asx_runtime_config config = config_of(profile);
    asx_runtime *rt;
    asx_region_id region;
    asx_task_id task;
    int polls = 0;
    asx_body loop = { wakes_itself, NULL, NULL };

    reset();
    loop.ctx = &polls;
    rt = runtime_of(&config);
    OK(asx_region_open(rt, root(rt), NULL, &region));
    deaf_with(rt, root(rt), "1", "2");
    deaf_with(rt, region, "3", NULL);
    OK(asx_region_defer(rt, region, droppable(cleans, "f")));
    OK(asx_region_defer(rt, region, droppable(waits_for_ever, "w")));
    task = deaf_with(rt, region, "4", NULL);
    OK(asx_task_push_cleanup(rt, task, droppable(waits_for_ever, "w")));
    task = deaf_with(rt, region, NULL, NULL);
    OK(asx_task_push_cleanup(rt, task, loop));
    run(rt, 0);
    RAN("bbbb");
    OK(asx_runtime_destroy(rt));
    EQUAL(strchr(ran, '1') != NULL && strchr(ran, '2') < strchr(ran, '1'), 1);
    EQUAL(strchr(ran, '3') != NULL, 1);
    EQUAL(strchr(ran, '4') == NULL, 1);
    EQUAL(strchr(ran, 'f') != NULL, 1);
    EQUAL(polls > 0 && polls <= 50, 1);
    EQUAL(drops, 4 + 4 + 1 + 2);
}

/* A finalizer that makes another one, for ever: destroying comes to an end all the same. */
static asx_region_id breeding;

static int32_t breeds(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id next;
    ++*(int *)ctx;
    OK(asx_region_spawn_finalizer(rt, breeding, asx_poll_with(breeds, ctx), &next));
    return ASX_POLL_READY;
}

static void destroyed_while_it_breeds(void)
{
    asx_runtime *rt = runtime();
    int bred = 0;

    OK(asx_region_open(rt, root(rt), NULL, &breeding));
    OK(asx_region_defer(rt, breeding, asx_poll_with(breeds, &bred)));
    OK(asx_runtime_destroy(rt));
    EQUAL(bred > 0 && bred <= 1000, 1);
}

static int32_t region_outcome(asx_runtime *rt, asx_region_id region)
{
    int32_t value = -1;
    OK(asx_region_outcome(rt, region, &value));
    return value;
}

static int32_t fails(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    OK(asx_task_set_error(rt, task, ASX_E_DISCONNECTED, ctx));
    return ASX_POLL_ERROR;
}

/* Outcomes outlast the regions around them: until they are released. */
static void outcomes_are_kept(int32_t profile)
{
    asx_runtime_config config = config_of(profile);
    asx_runtime *rt = runtime_of(&config);
    asx_region_id outer, middle, inner;
    asx_task_id task, other;
    asx_region_info info;
    asx_cancel_reason reason;
    char text[32];
    int32_t value;

    OK(asx_region_open(rt, root(rt), NULL, &outer));
    OK(asx_region_open(rt, outer, NULL, &middle));
    OK(asx_region_open(rt, middle, NULL, &inner));
    task = spawn(rt, inner, fails, "no luck");
    other = spawn(rt, middle, waits_for_ever, "");
    ANSWERS(asx_region_outcome(rt, inner, &value), ASX_E_INCOMPLETE_CHILDREN);
    run(rt, 0);
    OK(asx_shutdown(rt, 0, MS));
    run(rt, MS);
    OK(asx_quiescent(rt, NULL));
    EQUAL(outcome(rt, task), ASX_OUTCOME_ERR);
    EQUAL(outcome(rt, other), ASX_OUTCOME_CANCELLED);
    EQUAL(region_outcome(rt, inner), ASX_OUTCOME_ERR);
    EQUAL(region_outcome(rt, middle), ASX_OUTCOME_CANCELLED);
    EQUAL(region_outcome(rt, outer), ASX_OUTCOME_CANCELLED);
    OK(asx_task_get_text(rt, task, ASX_TEXT_OUTCOME, text, sizeof text, NULL));
    EQUAL(strcmp(text, "no luck"), 0);
    reason.struct_size = (uint32_t)sizeof reason;
    OK(asx_task_reason(rt, other, 1, &reason, NULL, 0, NULL));
    EQUAL(reason.kind, ASX_CANCEL_PARENT);
    OK(asx_region_reason(rt, inner, 0, &reason, NULL, 0, NULL));
    /* Their slots are gone, as chapter 5 of the contract says. */
    info.struct_size = (uint32_t)sizeof info;
    ANSWERS(asx_region_get_info(rt, inner, &info), ASX_E_STALE_HANDLE);
    ANSWERS(asx_task_wake(rt, task), ASX_E_STALE_HANDLE);
    ANSWERS(asx_task_cancel(rt, task, ASX_CANCEL_USER, NULL, NULL), ASX_E_STALE_HANDLE);
    ANSWERS(asx_region_defer(rt, inner, asx_poll_with(cleans, "")), ASX_E_STALE_HANDLE);
    verify(rt);
    /* Released alone, and with what is around. */
    OK(asx_task_release(rt, task));
    ANSWERS(asx_task_release(rt, task), ASX_E_STALE_HANDLE);
    ANSWERS(asx_task_outcome(rt, task, &value), ASX_E_STALE_HANDLE);
    OK(asx_region_release(rt, inner));
    ANSWERS(asx_region_outcome(rt, inner, &value), ASX_E_STALE_HANDLE);
    EQUAL(outcome(rt, other), ASX_OUTCOME_CANCELLED);
    OK(asx_region_release(rt, outer));
    ANSWERS(asx_task_outcome(rt, other, &value), ASX_E_STALE_HANDLE);
    ANSWERS(asx_region_outcome(rt, middle, &value), ASX_E_STALE_HANDLE);
    EQUAL(region_outcome(rt, root(rt)), ASX_OUTCOME_CANCELLED);
    verify(rt);
    OK(asx_runtime_destroy(rt));
}

/* Whoever releases the outermost region of each request does not grow. */
static void releasing_gives_everything_back(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt = runtime_of(&config);
    asx_region_id outer, inner;
    asx_stats stats;
    uint64_t used = 0;
    int i;

    for (i = 0; i < 1000; ++i) {
        OK(asx_region_open(rt, root(rt), NULL, &outer));
        OK(asx_region_open(rt, outer, NULL, &inner));
        spawn(rt, inner, fails, "no luck");
        OK(asx_region_end(rt, inner));
        OK(asx_region_end(rt, outer));
        run(rt, 0);
        OK(asx_region_release(rt, outer));
        stats.struct_size = (uint32_t)sizeof stats;
        OK(asx_get_stats(rt, &stats));
        if (i == 500)
            used = stats.pool_used;
    }
    EQUAL(stats.pool_used, used);
    OK(asx_runtime_destroy(rt));
}

/* Callbacks that are left by a jump. */
static jmp_buf out;
static int jumps;

static int32_t jumps_out(asx_cx *cx, void *ctx)
{
    (void)cx;
    (void)ctx;
    longjmp(out, 1);
    return ASX_POLL_READY;
}

static void drop_jumps_out(void *ctx)
{
    (void)ctx;
    if (jumps)
        longjmp(out, 1);
    ++drops;
}

static uint64_t clock_jumps_out(void *hook)
{
    (void)hook;
    if (jumps)
        longjmp(out, 1);
    return MS;
}

/* After a poll was left its task has panicked, its stack runs, and everything goes on. */
static void left_in_a_poll(int32_t profile)
{
    asx_runtime_config config = config_of(profile);
    asx_runtime *volatile rt = runtime_of(&config);
    asx_task_id task, other;

    reset();
    ANSWERS(asx_runtime_recover(rt), ASX_E_INVALID_TRANSITION);
    ANSWERS(asx_runtime_recover(NULL), ASX_E_INVALID_ARGUMENT);
    OK(asx_task_spawn(rt, root(rt), droppable(jumps_out, NULL), NULL, &task));
    OK(asx_task_push_cleanup(rt, task, droppable(cleans, "1")));
    other = spawn(rt, root(rt), cleans, "o");
    if (setjmp(out) == 0) {
        asx_step(rt, 0, 10, NULL);
        EQUAL(0, 1);
    }
    ANSWERS(asx_step(rt, 0, 10, NULL), ASX_E_REENTRANT);
    ANSWERS(asx_runtime_destroy(rt), ASX_E_REENTRANT);
    OK(asx_runtime_recover(rt));
    ANSWERS(asx_runtime_recover(rt), ASX_E_INVALID_TRANSITION);
    EQUAL(drops, 1);
    run(rt, 0);
    EQUAL(outcome(rt, task), ASX_OUTCOME_PANICKED);
    EQUAL(outcome(rt, other), ASX_OUTCOME_OK);
    EQUAL(strchr(ran, '1') != NULL, 1);
    EQUAL(drops, 2);
    verify(rt);
    finish(rt);
}

/* The same for a drop callback, in a step and in a destroy, and for the clock. */
static void left_in_hooks(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *volatile rt;
    asx_body body = { cleans, (void *)"1", drop_jumps_out };
    asx_task_id task;
    uint64_t now;

    reset();
    config.clock.now = clock_jumps_out;
    rt = runtime_of(&config);
    OK(asx_task_spawn(rt, root(rt), body, NULL, &task));
    jumps = 1;
    if (setjmp(out) == 0) {
        asx_step(rt, 0, 10, NULL);
        EQUAL(0, 1);
    }
    ANSWERS(asx_now(rt, &now), ASX_E_REENTRANT);
    OK(asx_runtime_recover(rt));
    OK(asx_now(rt, &now));
    EQUAL(outcome(rt, task), ASX_OUTCOME_OK);
    if (setjmp(out) == 0) {
        asx_step(rt, ASX_NOW, 10, NULL);
        EQUAL(0, 1);
    }
    OK(asx_runtime_recover(rt));
    OK(asx_task_spawn(rt, root(rt), body, NULL, &task));
    if (setjmp(out) == 0) {
        asx_runtime_destroy(rt);
        EQUAL(0, 1);
    }
    ANSWERS(asx_runtime_destroy(rt), ASX_E_REENTRANT);
    OK(asx_runtime_recover(rt));
    jumps = 0;
    OK(asx_step(rt, ASX_NOW, 10, NULL));
    EQUAL(drops, 0);
    OK(asx_runtime_destroy(rt));
}

/* An allocator that may be left as well. What it gave and did not get back is freed by the test. */
static void *given[4096];
static int left_at = -1;

static void *gives(void *hook, size_t size)
{
    int i;
    (void)hook;
    if (left_at == 0)
        longjmp(out, 1);
    if (left_at > 0)
        --left_at;
    for (i = 0; i < 4096; ++i)
        if (!given[i])
            return given[i] = malloc(size);
    return NULL;
}

static void takes(void *hook, void *block)
{
    int i;
    (void)hook;
    for (i = 0; i < 4096; ++i)
        if (given[i] == block)
            given[i] = NULL;
    free(block);
}

/* What was being changed is not used again, and can be given up. */
static void left_in_the_allocator(void)
{
    asx_runtime *volatile rt;
    asx_task_id task;
    uint64_t now;
    volatile int at, i, left = 0;

    for (at = 0; at < 5; ++at) {
        rt = runtime();
        left_at = at;
        if (setjmp(out) == 0) {
            for (i = 0; i < 8000; ++i) {
                asx_task_spawn(rt, root(rt), droppable(cleans, "x"), NULL, &task);
                asx_task_push_cleanup(rt, task, droppable(cleans, "y"));
            }
            asx_run_until_idle(rt, 0, NULL);
        } else {
            ++left;
            ANSWERS(asx_now(rt, &now), ASX_E_REENTRANT);
            OK(asx_runtime_recover(rt));
            ANSWERS(asx_now(rt, &now), ASX_E_INTERNAL);
            ANSWERS(asx_step(rt, 0, 1, NULL), ASX_E_INTERNAL);
        }
        left_at = -1;
        OK(asx_runtime_destroy(rt));
        for (i = 0; i < 4096; ++i) {
            free(given[i]);
            given[i] = NULL;
        }
    }
    EQUAL(left, 5);
}

int main(void)
{
    OK(asx_set_allocator(gives, takes, NULL));
    left_in_a_poll(ASX_PROFILE_CORE);
    left_in_a_poll(ASX_PROFILE_EMBEDDED);
    left_in_hooks();
    left_in_the_allocator();
    outcomes_are_kept(ASX_PROFILE_CORE);
    outcomes_are_kept(ASX_PROFILE_EMBEDDED);
    releasing_gives_everything_back();
    forced(MS);
    forced(0);
    forced_and_cut_off();
    forced_in_its_poll();
    destroyed(ASX_PROFILE_CORE);
    destroyed(ASX_PROFILE_EMBEDDED);
    destroyed_while_it_breeds();
    puts("ends: ok");
    return 0;
}
