/* Every name of the contract's C surface, used as the contract says. This file is both C99 and C++17:
   it is compiled as either. */
#include <asx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANT(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const asx_status statuses[] = { ASX_OK, ASX_E_WOULD_BLOCK, ASX_E_EMPTY, ASX_E_FULL,
    ASX_E_DISCONNECTED, ASX_E_CANCELLED, ASX_E_INVALID_ARGUMENT, ASX_E_INVALID_TRANSITION,
    ASX_E_STALE_HANDLE, ASX_E_RESOURCE_EXHAUSTED, ASX_E_BUDGET_EXHAUSTED, ASX_E_REENTRANT,
    ASX_E_INTERNAL, ASX_E_REGION_NOT_OPEN, ASX_E_REGION_CLOSED, ASX_E_ADMISSION_CLOSED,
    ASX_E_INCOMPLETE_CHILDREN, ASX_E_OBLIGATION_ALREADY_RESOLVED, ASX_E_OBLIGATION_LEAKED,
    ASX_E_UNRESOLVED_OBLIGATIONS, ASX_E_TIMER_DURATION_EXCEEDED, ASX_E_TASKS_STILL_ACTIVE,
    ASX_E_OBLIGATIONS_UNRESOLVED, ASX_E_REGIONS_NOT_CLOSED, ASX_E_TIMERS_PENDING,
    ASX_E_CHANNEL_NOT_DRAINED, ASX_E_WITNESS_TASK_MISMATCH, ASX_E_WITNESS_REGION_MISMATCH,
    ASX_E_WITNESS_EPOCH_MISMATCH, ASX_E_WITNESS_PHASE_REGRESSION, ASX_E_WITNESS_REASON_WEAKENED,
    ASX_E_AFFINITY_VIOLATION, ASX_E_CAPABILITY_DENIED, ASX_E_DETERMINISM_VIOLATION,
    ASX_E_REPLAY_MISMATCH, ASX_E_TRACE_MALFORMED, ASX_E_TRACE_TRUNCATED, ASX_E_TRACE_VERSION };

static const int32_t region_states[] = { ASX_REGION_OPEN, ASX_REGION_CLOSING, ASX_REGION_DRAINING,
    ASX_REGION_FINALIZING, ASX_REGION_CLOSED };
static const int32_t task_states[] = { ASX_TASK_CREATED, ASX_TASK_RUNNING,
    ASX_TASK_CANCEL_REQUESTED, ASX_TASK_CANCELLING, ASX_TASK_FINALIZING, ASX_TASK_COMPLETED };
static const int32_t obligation_states[] = { ASX_OBLIGATION_RESERVED, ASX_OBLIGATION_COMMITTED,
    ASX_OBLIGATION_ABORTED, ASX_OBLIGATION_LEAKED };
static const int32_t outcomes[]
    = { ASX_OUTCOME_OK, ASX_OUTCOME_ERR, ASX_OUTCOME_CANCELLED, ASX_OUTCOME_PANICKED };
static const asx_cancel_kind kinds[] = { ASX_CANCEL_USER, ASX_CANCEL_TIMEOUT, ASX_CANCEL_DEADLINE,
    ASX_CANCEL_POLL_QUOTA, ASX_CANCEL_COST_BUDGET, ASX_CANCEL_FAIL_FAST, ASX_CANCEL_RACE_LOST,
    ASX_CANCEL_LINKED_EXIT, ASX_CANCEL_PARENT, ASX_CANCEL_RESOURCE, ASX_CANCEL_SHUTDOWN };
static const asx_cancel_phase phases[] = { ASX_CANCEL_REQUESTED, ASX_CANCEL_CANCELLING,
    ASX_CANCEL_FINALIZING, ASX_CANCEL_COMPLETED };
static const int32_t polls[] = { ASX_POLL_PENDING, ASX_POLL_READY, ASX_POLL_ERROR };
static const asx_channel_state channel_states[] = { ASX_CHANNEL_OPEN, ASX_CHANNEL_SENDER_CLOSED,
    ASX_CHANNEL_RECEIVER_CLOSED, ASX_CHANNEL_FULLY_CLOSED };

/* Enumerations count from 0; each status is another number. */
static void constants(void)
{
    size_t i;
    for (i = 1; i < COUNT(statuses); ++i)
        WANT(statuses[i - 1] < statuses[i]);
#define COUNTS(array)                                                                              \
    for (i = 0; i < COUNT(array); ++i)                                                             \
    WANT(array[i] == (int32_t)i)
    COUNTS(region_states);
    COUNTS(task_states);
    COUNTS(obligation_states);
    COUNTS(outcomes);
    COUNTS(kinds);
    COUNTS(phases);
    COUNTS(polls);
    COUNTS(channel_states);
    WANT(COUNT(kinds) == 11 && COUNT(phases) == 4);
}

/* What the tasks of a runtime share. */
struct app {
    asx_channel_sender sender;
    asx_channel_receiver receiver;
    asx_send_permit permit;
    uint32_t sent, received;
    int polls, woken;
    asx_status last;
};

/* Sends 1, 2, 3 through a channel with one place, and returns ASX_POLL_ERROR if a call fails. */
static int32_t sends(asx_cx *cx, void *ctx)
{
    struct app *app = (struct app *)ctx;
    ++app->polls;
    while (app->sent < 3) {
        asx_send_permit permit;
        uint32_t value = app->sent + 1;
        asx_status status = asx_channel_reserve(&app->sender, cx, &permit);
        if (status == ASX_E_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status != ASX_OK || asx_send_permit_send(&permit, &value) != ASX_OK)
            return ASX_POLL_ERROR;
        /* A permit is resolved once. */
        if (asx_send_permit_send(&permit, &value) != ASX_E_OBLIGATION_ALREADY_RESOLVED)
            return ASX_POLL_ERROR;
        app->sent = value;
    }
    return ASX_POLL_READY;
}

/* Receives three of them. */
static int32_t receives(asx_cx *cx, void *ctx)
{
    struct app *app = (struct app *)ctx;
    while (app->received < 3) {
        uint32_t value = 0;
        asx_status status = asx_channel_recv(&app->receiver, cx, &value);
        if (status == ASX_E_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status != ASX_OK || value != app->received + 1)
            return ASX_POLL_ERROR;
        app->received = value;
    }
    return ASX_POLL_READY;
}

/* Takes a permit, and keeps it until the task is cancelled and beyond. */
static int32_t holds(asx_cx *cx, void *ctx)
{
    struct app *app = (struct app *)ctx;
    ++app->polls;
    if (app->polls == 1) {
        app->last = asx_channel_reserve(&app->sender, cx, &app->permit);
        return ASX_POLL_PENDING;
    }
    if (!asx_is_cancelled(cx))
        return ASX_POLL_PENDING;
    /* It was seen: the checks of a cancel come first, and nothing changes. */
    app->last = asx_checkpoint(cx);
    if (asx_channel_reserve(&app->sender, cx, &app->permit) != ASX_E_CANCELLED)
        return ASX_POLL_ERROR;
    if (asx_channel_recv(&app->receiver, cx, &app->received) != ASX_E_CANCELLED)
        return ASX_POLL_ERROR;
    return ASX_POLL_CANCELLED;
}

static asx_runtime *runtime(asx_time *now)
{
    asx_runtime_config config;
    asx_runtime *rt = NULL;
    WANT(asx_runtime_config_init(&config, sizeof config, ASX_PROFILE_CORE) == ASX_OK);
    config.clock = asx_clock_virtual(now);
    WANT(asx_runtime_create(&config, &rt) == ASX_OK);
    return rt;
}

static asx_channel_info info_of(asx_runtime *rt, const struct app *app)
{
    asx_channel_info info;
    info.struct_size = (uint32_t)sizeof info;
    WANT(asx_channel_get_info(rt, app->sender.channel, &info) == ASX_OK);
    return info;
}

static void channels(void)
{
    asx_time now = 0;
    asx_runtime *rt = runtime(&now);
    asx_region_id root;
    asx_task_id producer, consumer;
    asx_send_permit permit;
    asx_channel_state state;
    struct app app;
    uint32_t value = 0;
    int32_t outcome = -1;

    memset(&app, 0, sizeof app);
    WANT(asx_region_root(rt, &root) == ASX_OK);
    WANT(asx_channel_create(rt, &root, 1, sizeof value, &app.sender, &app.receiver) == ASX_OK);
    WANT(asx_channel_try_recv(&app.receiver, &value) == ASX_E_EMPTY);
    WANT(asx_task_spawn(rt, root, asx_poll_with(sends, &app), NULL, &producer) == ASX_OK);
    WANT(asx_task_spawn(rt, root, asx_poll_with(receives, &app), NULL, &consumer) == ASX_OK);
    WANT(asx_run_until_idle(rt, ASX_NOW, NULL) == ASX_OK);
    WANT(app.sent == 3 && app.received == 3 && app.polls > 1);
    WANT(asx_task_outcome(rt, producer, &outcome) == ASX_OK && outcome == ASX_OUTCOME_OK);
    WANT(asx_task_outcome(rt, consumer, &outcome) == ASX_OK && outcome == ASX_OUTCOME_OK);

    /* An abort gives the slot back; a second one does nothing. */
    WANT(asx_channel_try_reserve(&app.sender, NULL, 0, &permit) == ASX_OK);
    WANT(asx_channel_try_send(&app.sender, &value) == ASX_E_FULL);
    asx_send_permit_abort(&permit);
    asx_send_permit_abort(&permit);
    asx_send_permit_abort(NULL);
    WANT(asx_channel_try_send(&app.sender, &value) == ASX_OK);
    WANT(asx_channel_try_recv(&app.receiver, &value) == ASX_OK);
    state = info_of(rt, &app).state;
    WANT(state == ASX_CHANNEL_OPEN);
    WANT(asx_channel_receiver_close(&app.receiver) == ASX_OK);
    WANT(asx_channel_try_send(&app.sender, &value) == ASX_E_DISCONNECTED);
    WANT(info_of(rt, &app).state == ASX_CHANNEL_RECEIVER_CLOSED);
    WANT(asx_runtime_destroy(rt) == ASX_OK);
}

/* A permit whose owner does not resolve it is aborted when the task ends. */
static void cancels(void)
{
    asx_time now = 0;
    asx_runtime *rt = runtime(&now);
    asx_region_id root;
    asx_task_id task;
    asx_cancel_reason reason;
    asx_cx outside;
    struct app app;
    int32_t first = 0, outcome = -1;

    memset(&app, 0, sizeof app);
    WANT(asx_region_root(rt, &root) == ASX_OK);
    WANT(asx_channel_create(rt, NULL, 1, sizeof(uint32_t), &app.sender, &app.receiver) == ASX_OK);
    WANT(asx_task_spawn(rt, root, asx_poll_with(holds, &app), NULL, &task) == ASX_OK);
    WANT(asx_run_until_idle(rt, ASX_NOW, NULL) == ASX_OK);
    WANT(app.last == ASX_OK && info_of(rt, &app).reserved == 1);
    outside = asx_cx_of(rt, task);
    WANT(asx_checkpoint(&outside) == ASX_OK && !asx_is_cancelled(&outside));
    WANT(asx_task_cancel(rt, task, ASX_CANCEL_TIMEOUT, NULL, &first) == ASX_OK && first == 1);
    reason.struct_size = (uint32_t)sizeof reason;
    WANT(asx_task_reason(rt, task, 0, &reason, NULL, 0, NULL) == ASX_OK);
    WANT(reason.kind == ASX_CANCEL_TIMEOUT);
    WANT(asx_run_until_idle(rt, ASX_NOW, NULL) == ASX_OK);
    WANT(app.last == ASX_E_CANCELLED && info_of(rt, &app).reserved == 0);
    WANT(asx_send_permit_send(&app.permit, &app.sent) == ASX_E_OBLIGATION_ALREADY_RESOLVED);
    WANT(asx_task_outcome(rt, task, &outcome) == ASX_OK && outcome == ASX_OUTCOME_CANCELLED);
    WANT(asx_runtime_destroy(rt) == ASX_OK);
}

/* What is no context, sender or permit of the runtime is refused by its own status. */
static void strangers(void)
{
    asx_time now = 0;
    asx_runtime *rt = runtime(&now), *other = runtime(&now);
    asx_region_id root;
    asx_task_id task;
    asx_cx cx, foreign;
    asx_send_permit permit;
    asx_channel_sender stale;
    struct app app;
    uint32_t value = 0;

    memset(&app, 0, sizeof app);
    WANT(asx_region_root(other, &root) == ASX_OK);
    WANT(asx_task_spawn(other, root, asx_poll_with(holds, &app), NULL, &task) == ASX_OK);
    foreign = asx_cx_of(other, task);
    WANT(asx_region_root(rt, &root) == ASX_OK);
    WANT(asx_task_spawn(rt, root, asx_poll_with(holds, &app), NULL, &task) == ASX_OK);
    cx = asx_cx_of(rt, task);
    WANT(asx_channel_create(rt, NULL, 1, sizeof value, &app.sender, &app.receiver) == ASX_OK);
    WANT(asx_channel_reserve(&app.sender, &foreign, &permit) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_channel_recv(&app.receiver, &foreign, &value) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_channel_reserve(NULL, &cx, &permit) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_channel_reserve(&app.sender, NULL, &permit) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_channel_reserve(&app.sender, &cx, NULL) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_channel_try_recv(&app.receiver, NULL) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_checkpoint(NULL) == ASX_E_INVALID_ARGUMENT && asx_is_cancelled(NULL));
    stale = app.sender;
    ++stale.channel.generation;
    WANT(asx_channel_reserve(&stale, &cx, &permit) == ASX_E_STALE_HANDLE);
    WANT(asx_channel_reserve(&app.sender, &cx, &permit) == ASX_OK);
    WANT(asx_send_permit_send(&permit, NULL) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_send_permit_send(&permit, &value) == ASX_OK);
    ++cx.task.generation;
    WANT(asx_checkpoint(&cx) == ASX_E_STALE_HANDLE);
    WANT(asx_runtime_destroy(other) == ASX_OK);
    WANT(asx_runtime_destroy(rt) == ASX_OK);
}

static void obligations(void)
{
    asx_time now = 0;
    asx_runtime *rt = runtime(&now);
    asx_region_id root;
    asx_obligation_id kept, given_up;
    asx_id bits;
    asx_budget budget;
    int32_t state = -1;

    budget.deadline = ASX_NONE;
    budget.poll_quota = ASX_NONE;
    budget.cost_quota = 3;
    WANT(budget.cost_quota == 3 && budget.deadline == budget.poll_quota);
    WANT(asx_region_root(rt, &root) == ASX_OK);
    bits = root.bits;
    WANT(asx_handle_tag(bits) == ASX_TAG_REGION);
    WANT(asx_obligation_reserve(rt, root, &kept) == ASX_OK);
    WANT(asx_obligation_reserve(rt, root, &given_up) == ASX_OK);
    WANT(asx_obligation_state(rt, kept, &state) == ASX_OK && state == ASX_OBLIGATION_RESERVED);
    WANT(asx_obligation_commit(rt, kept) == ASX_OK);
    WANT(asx_obligation_commit(rt, kept) == ASX_E_OBLIGATION_ALREADY_RESOLVED);
    WANT(asx_obligation_abort(rt, given_up) == ASX_OK);
    WANT(asx_obligation_abort(rt, given_up) == ASX_E_OBLIGATION_ALREADY_RESOLVED);
    WANT(asx_runtime_destroy(rt) == ASX_OK);
}

static void counts(void *data, asx_task_id task)
{
    (void)task;
    ++*(int *)data;
}

static asx_waker counter(int *count)
{
    asx_waker waker;
    memset(&waker, 0, sizeof waker);
    waker.wake = counts;
    waker.data = count;
    return waker;
}

#define MS UINT64_C(1000000)

/* A wheel without a runtime. */
static void timers(void)
{
    asx_timer_wheel *wheel = NULL;
    asx_timer_handle handle[5], moved, far = { 7, 7 };
    asx_waker due[4], nothing;
    asx_time next = 0;
    int fired[5] = { 0, 0, 0, 0, 0 };
    size_t i;

    memset(&nothing, 0, sizeof nothing);
    WANT(asx_timer_wheel_create(NULL, &wheel) == ASX_OK);
    WANT(asx_timer_wheel_next_deadline(wheel, &next) == ASX_E_EMPTY);
    for (i = 0; i < 5; ++i) {
        asx_time deadline = (asx_time)(5 - i) * MS;
        WANT(asx_timer_try_register(wheel, deadline, counter(&fired[i]), &handle[i]) == ASX_OK);
    }
    WANT(asx_timer_wheel_next_deadline(wheel, &next) == ASX_OK && next == MS);
    WANT(handle[0].id != handle[1].id || handle[0].generation != handle[1].generation);
    WANT(asx_timer_cancel(wheel, &handle[4]) && !asx_timer_cancel(wheel, &handle[4]));
    moved = asx_timer_update(wheel, &handle[0], 2 * MS, counter(&fired[0]));
    WANT(!asx_timer_cancel(wheel, &handle[0]));
    /* Too far away: the old timer stays, and so does its handle. */
    far = asx_timer_update(wheel, &moved, UINT64_MAX, nothing);
    WANT(far.id == moved.id && far.generation == moved.generation);
    WANT(asx_timer_try_update(wheel, &moved, UINT64_MAX, nothing, &far)
        == ASX_E_TIMER_DURATION_EXCEEDED);
    WANT(asx_timer_register(wheel, UINT64_MAX, nothing, &far) == ASX_E_TIMER_DURATION_EXCEEDED);
    WANT(!asx_timer_cancel(wheel, &far) && asx_timer_wheel_len(wheel) == 4);

    /* Two fit; the rest stay, in order. */
    WANT(asx_timer_collect_expired(wheel, MS, due, 4) == 0);
    WANT(asx_timer_collect_expired(wheel, 4 * MS, due, 2) == 2);
    asx_waker_wake(due[0]);
    asx_waker_wake(due[1]);
    WANT(fired[3] == 1 && fired[0] == 1 && fired[2] == 0);
    WANT(asx_timer_collect_expired(wheel, 4 * MS, due, 4) == 2);
    asx_waker_wake(due[0]);
    WANT(fired[2] == 1 && fired[1] == 0);
    asx_waker_wake(due[1]);
    WANT(fired[1] == 1 && fired[4] == 0);
    asx_waker_wake(nothing);

    WANT(asx_timer_try_register(NULL, 1, nothing, &far) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_timer_try_register(wheel, 1, nothing, NULL) == ASX_E_INVALID_ARGUMENT);
    WANT(asx_timer_collect_expired(NULL, 1, due, 4) == 0 && !asx_timer_cancel(wheel, NULL));
    WANT(asx_timer_wheel_destroy(wheel) == ASX_OK);
    WANT(asx_timer_wheel_destroy(NULL) == ASX_E_INVALID_ARGUMENT);
}

/* Many timers, more than are taken at once, and a limit. */
static void many_timers(void)
{
    asx_timer_wheel_config config = ASX_TIMER_WHEEL_CONFIG_INIT;
    asx_timer_wheel *wheel = NULL;
    asx_timer_handle handle;
    static asx_waker due[300];
    static int fired[300];
    size_t i, taken;

    config.now = 10 * MS;
    config.max_timers = 300;
    WANT(asx_timer_wheel_create(&config, &wheel) == ASX_OK);
    for (i = 0; i < 300; ++i) {
        asx_time deadline = (10 + (i * 7919) % 5000) * MS;
        WANT(asx_timer_register(wheel, deadline, counter(&fired[i]), &handle) == ASX_OK);
    }
    WANT(asx_timer_register(wheel, MS, counter(&fired[0]), &handle) == ASX_E_RESOURCE_EXHAUSTED);
    taken = asx_timer_collect_expired(wheel, 6000 * MS, due, 299);
    WANT(taken == 299 && asx_timer_wheel_len(wheel) == 1);
    WANT(asx_timer_collect_expired(wheel, 0, due + taken, 1) == 1);
    for (i = 0; i < 300; ++i)
        asx_waker_wake(due[i]);
    for (i = 0; i < 300; ++i)
        WANT(fired[i] == 1);
    /* An empty wheel can be filled again: timers get the slots, not the wakers, of earlier ones. */
    for (i = 0; i < 300; ++i)
        WANT(asx_timer_register(wheel, 7000 * MS + i, counter(&fired[299 - i]), &handle) == ASX_OK);
    WANT(asx_timer_collect_expired(wheel, 8000 * MS, due, 300) == 300);
    for (i = 0; i < 300; ++i) {
        asx_waker_wake(due[i]);
        WANT(fired[299 - i] == 2);
    }
    WANT(asx_timer_wheel_destroy(wheel) == ASX_OK);
}

static int32_t waits_for_the_wheel(asx_cx *cx, void *ctx)
{
    struct app *app = (struct app *)ctx;
    (void)cx;
    return app->polls++ == 0 ? ASX_POLL_PENDING : ASX_POLL_READY;
}

/* A wheel and a task of a runtime, with a clock that the program moves. */
static void wheel_and_task(void)
{
    asx_time now = 5 * MS;
    asx_clock clock = asx_clock_virtual(&now);
    asx_runtime *rt = runtime(&now);
    asx_timer_wheel *wheel = NULL;
    asx_timer_handle handle;
    asx_region_id root;
    asx_task_id task;
    asx_waker due;
    asx_cx cx;
    struct app app;

    memset(&app, 0, sizeof app);
    WANT(asx_timer_wheel_create(NULL, &wheel) == ASX_OK);
    WANT(asx_region_root(rt, &root) == ASX_OK);
    WANT(asx_task_spawn(rt, root, asx_poll_with(waits_for_the_wheel, &app), NULL, &task) == ASX_OK);
    WANT(asx_run_until_idle(rt, ASX_NOW, NULL) == ASX_OK && app.polls == 1);
    cx = asx_cx_of(rt, task);
    WANT(asx_timer_register(wheel, 9 * MS, asx_cx_waker(&cx), &handle) == ASX_OK);
    clock.wait_until(clock.state, 9 * MS);
    WANT(now == 9 * MS && clock.now(clock.state) == now);
    WANT(asx_timer_collect_expired(wheel, now, &due, 1) == 1);
    asx_waker_wake(due);
    WANT(asx_run_until_idle(rt, ASX_NOW, NULL) == ASX_OK && app.polls == 2);
    WANT(asx_timer_wheel_destroy(wheel) == ASX_OK);
    WANT(asx_runtime_destroy(rt) == ASX_OK);
}

int main(void)
{
    constants();
    channels();
    cancels();
    strangers();
    obligations();
    timers();
    many_timers();
    wheel_and_task();
    puts("names: ok");
    return 0;
}
