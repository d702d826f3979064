/* Every part of the interface once, in the order of the header. */
#include "check.h"

static int32_t ready(asx_cx *cx, void *ctx)
{
    (void)cx;
    ++*(int *)ctx;
    return ASX_POLL_READY;
}

static int32_t park(asx_cx *cx, void *ctx)
{
    ++*(int *)ctx;
    return asx_checkpoint(cx) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

static void configurations(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt = NULL;
    union {
        asx_runtime_config config;
        unsigned char bytes[sizeof(asx_runtime_config) + 64];
    } newer;
    asx_runtime_config older;

    ANSWERS(asx_runtime_config_init(&config, 8, ASX_PROFILE_CORE), ASX_E_INVALID_ARGUMENT);
    ANSWERS(asx_runtime_config_init(&config, sizeof config, 9), ASX_E_INVALID_ARGUMENT);
    ANSWERS(asx_runtime_create(NULL, &rt), ASX_E_INVALID_ARGUMENT);
    ANSWERS(asx_runtime_create(&config, NULL), ASX_E_INVALID_ARGUMENT);
    config.profile = 77;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    config = config_of(ASX_PROFILE_CORE);
    config.tie_break = 5;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    /* The root is a region, and without a step nothing runs. */
    config = config_of(ASX_PROFILE_CORE);
    config.max_regions = 0;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    config = config_of(ASX_PROFILE_CORE);
    config.max_steps = 0;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);

    /* A program that knows no more than the seed. */
    older = config_of(ASX_PROFILE_CORE);
    older.struct_size = 16;
    older.max_tasks = 0; /* not looked at */
    rt = runtime_of(&older);
    {
        int polls = 0;
        spawn(rt, root(rt), ready, &polls);
        EQUAL(run(rt, 0), 1);
        finish(rt);
    }

    /* A program that knows more than this library. */
    memset(&newer, 0, sizeof newer);
    newer.config = config_of(ASX_PROFILE_CORE);
    newer.config.struct_size = (uint32_t)sizeof newer;
    rt = runtime_of(&newer.config);
    OK(asx_runtime_destroy(rt));
    newer.bytes[sizeof newer - 1] = 1;
    ANSWERS(asx_runtime_create(&newer.config, &rt), ASX_E_INVALID_ARGUMENT);
}

static void names(void)
{
    int32_t status;
    EQUAL(asx_version(), ASX_VERSION);
    if (has(ASX_FEATURE_NAMES))
        EQUAL(strcmp(asx_status_name(ASX_E_STALE_HANDLE), "STALE_HANDLE"), 0);
    for (status = -5; status < 1000; ++status) {
        EQUAL(asx_status_name(status) != NULL && asx_status_str(status) != NULL, 1);
        EQUAL(asx_event_name((uint32_t)status) != NULL, 1);
    }
    EQUAL(strcmp(asx_status_name(12345), "UNKNOWN"), 0);
    EQUAL(strcmp(asx_status_name(INT32_MIN), "UNKNOWN"), 0);
    EQUAL(asx_status_str(INT32_MAX) != NULL && asx_status_str(INT32_MIN) != NULL, 1);
    EQUAL(strcmp(asx_event_name(UINT32_MAX), "unknown"), 0);
    EQUAL(strcmp(asx_value_name(UINT64_MAX), "unknown"), 0);
    EQUAL(strcmp(asx_value_name(0), "unknown"), 0);
}

static void tasks(void)
{
    asx_runtime *rt = runtime();
    int polls = 0, drops = 0;
    asx_body body = { ready, &polls, NULL };
    asx_task_id task;
    asx_task_info info;
    asx_task_options options = ASX_TASK_OPTIONS_INIT;

    (void)drops;
    OK(asx_task_spawn(rt, root(rt), body, NULL, &task));
    ANSWERS(asx_task_outcome(rt, task, (int32_t[1]){ 0 }), ASX_E_TASKS_STILL_ACTIVE);
    EQUAL(run(rt, 0), 1);
    EQUAL(outcome(rt, task), ASX_OUTCOME_OK);
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_task_get_info(rt, task, &info));
    EQUAL(info.state, ASX_TASK_COMPLETED);
    EQUAL(info.polls, 1);
    OK(asx_task_release(rt, task));
    ANSWERS(asx_task_release(rt, task), ASX_E_STALE_HANDLE);

    options.flags |= ASX_TASK_AUTO_RELEASE;
    OK(asx_task_spawn(rt, root(rt), body, &options, &task));
    run(rt, 0);
    ANSWERS(asx_task_wake(rt, task), ASX_E_STALE_HANDLE);
    finish(rt);
}

/* A task that is completed by force, polled or not, frees its slot like any other; drop callbacks
 * come in the order in which their tasks ended. */
static int order[4], ordered;

static void note_drop(void *ctx)
{
    if (ordered < 4)
        order[ordered++] = *(int *)ctx;
}

static int32_t deaf(asx_cx *cx, void *ctx)
{
    (void)cx;
    (void)ctx;
    return ASX_POLL_PENDING;
}

static void forced_ends(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    asx_task_id tasks[2];
    asx_task_options options = ASX_TASK_OPTIONS_INIT;
    int numbers[2] = { 1, 2 }, i;

    options.flags |= ASX_TASK_AUTO_RELEASE;
    OK(asx_region_open(rt, root(rt), NULL, &region));
    for (i = 0; i < 2; ++i) {
        asx_body body = { deaf, NULL, note_drop };
        body.ctx = &numbers[i];
        OK(asx_task_spawn(rt, region, body, &options, &tasks[i]));
    }
    run(rt, 0);
    OK(asx_region_close(rt, region, ASX_CANCEL_USER, NULL, MS, NULL));
    run(rt, MS);
    for (i = 0; i < 2; ++i)
        ANSWERS(asx_task_wake(rt, tasks[i]), ASX_E_STALE_HANDLE);
    EQUAL(ordered, 2);
    EQUAL(order[0] * 10 + order[1], 12);
    finish(rt);
}

/* Ends itself by force while it is polled, and lets its own slot go. */
static int32_t vanishes(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    OK(asx_region_close(rt, *(asx_region_id *)ctx, ASX_CANCEL_USER, NULL, 0, NULL));
    OK(asx_fire_timers(rt, NULL));
    OK(asx_task_release(rt, task));
    return ASX_POLL_READY;
}

/* Of a task that is gone nothing is left, its watchdog neither. */
static void gone_in_its_poll(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    asx_task_id task;
    asx_task_options options = ASX_TASK_OPTIONS_INIT;
    uint64_t next;

    options.flags = ASX_TASK_AUTO_RELEASE;
    options.watchdog_ns = MS;
    OK(asx_region_open(rt, root(rt), NULL, &region));
    OK(asx_task_spawn(rt, region, asx_poll_with(vanishes, &region), &options, &task));
    run(rt, 0);
    ANSWERS(asx_task_wake(rt, task), ASX_E_STALE_HANDLE);
    ANSWERS(asx_next_deadline(rt, &next), ASX_E_EMPTY);
    finish(rt);
}

static asx_runtime *clocked;

static uint64_t nosy_clock(void *hook)
{
    uint64_t now = 0;
    (void)hook;
    if (clocked)
        ANSWERS(asx_now(clocked, &now), ASX_E_REENTRANT);
    return 7 * MS;
}

static uint64_t no_clock(void *hook)
{
    (void)hook;
    return ASX_NONE;
}

/* The clock hook may not call; from inside a poll a step is refused before the clock is asked. */
static void clocks(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    uint64_t now = 0;

    config.clock.now = nosy_clock;
    rt = runtime_of(&config);
    clocked = rt;
    OK(asx_step(rt, ASX_NOW, 1, NULL));
    clocked = NULL;
    OK(asx_now(rt, &now));
    EQUAL(now, 7 * MS);
    finish(rt);
    rt = runtime();
    ANSWERS(asx_step(rt, ASX_NOW, 1, NULL), ASX_E_INVALID_ARGUMENT);
    finish(rt);

    /* A clock without a time to give: nothing has happened. */
    config.clock.now = no_clock;
    rt = runtime_of(&config);
    {
        int polls = 0;
        spawn(rt, root(rt), ready, &polls);
        ANSWERS(asx_step(rt, ASX_NOW, 1, NULL), ASX_E_CAPABILITY_DENIED);
        ANSWERS(asx_run_until_idle(rt, ASX_NOW, NULL), ASX_E_CAPABILITY_DENIED);
        EQUAL(polls, 0);
        OK(asx_now(rt, &now));
        EQUAL(now, 0);
        EQUAL(run(rt, 0), 1);
        EQUAL(polls, 1);
    }
    finish(rt);
}

/* A giant channel costs what is used of it, or is refused. */
static void giants(void)
{
    asx_runtime *rt = runtime();
    asx_channel_id channel;
    char byte = 'a';

    ANSWERS(make_channel(rt, NULL, SIZE_MAX, 1, &channel), ASX_E_RESOURCE_EXHAUSTED);
    ANSWERS(make_channel(rt, NULL, SIZE_MAX - 1, 1 << 20, &channel), ASX_E_RESOURCE_EXHAUSTED);
    OK(make_channel(rt, NULL, 1 << 28, 1, &channel));
    OK(asx_channel_try_send(SENDER(rt, channel), &byte));
    byte = 'b';
    OK(asx_channel_try_recv(RECEIVER(rt, channel), &byte));
    EQUAL(byte, 'a');
    OK(asx_channel_sender_close(SENDER(rt, channel)));
    OK(asx_channel_receiver_close(RECEIVER(rt, channel)));
    finish(rt);
}

static void cancels(void)
{
    asx_runtime *rt = runtime();
    int polls = 0, drops = 0;
    int32_t first = 0;
    asx_body body = { park, &polls, count };
    asx_task_id task;
    char text[64];
    size_t size = 0;

    body.ctx = &polls;
    OK(asx_task_spawn(rt, root(rt), body, NULL, &task));
    body.ctx = &drops;
    body.poll = ready;
    OK(asx_task_push_cleanup(rt, task, body));
    run(rt, 0);
    OK(asx_task_cancel(rt, task, ASX_CANCEL_USER, "enough", &first));
    EQUAL(first, 1);
    OK(asx_task_cancel(rt, task, ASX_CANCEL_TIMEOUT, NULL, &first));
    EQUAL(first, 0);
    ANSWERS(asx_task_cancel(rt, task, 99, NULL, NULL), ASX_E_INVALID_ARGUMENT);
    run(rt, 0);
    EQUAL(outcome(rt, task), ASX_OUTCOME_CANCELLED);
    /* Two polls and one drop; the entry was polled and dropped. */
    EQUAL(polls, 3);
    EQUAL(drops, 2);
    ANSWERS(asx_task_get_text(rt, task, ASX_TEXT_REASON, text, sizeof text, &size), ASX_E_EMPTY);
    finish(rt);
}

static int32_t fails(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    (void)ctx;
    OK(asx_task_set_error(rt, task, ASX_E_DISCONNECTED, "no line"));
    /* Success is no error; what was set stays. */
    ANSWERS(asx_task_set_error(rt, task, ASX_OK, "all is well"), ASX_E_INVALID_ARGUMENT);
    ANSWERS(asx_task_set_error(rt, task, -2, "less than none"), ASX_E_INVALID_ARGUMENT);
    return ASX_POLL_ERROR;
}

/* Codes of the program are refused: they belong in the message. */
static int32_t fails_with_its_own_code(asx_cx *cx, void *ctx)
{
    (void)ctx;
    ANSWERS(asx_task_set_error(cx->rt, cx->task, 5, "5"), ASX_E_INVALID_ARGUMENT);
    OK(asx_task_set_error(cx->rt, cx->task, -1, "code 5"));
    return ASX_POLL_ERROR;
}

static int32_t joins_itself(asx_cx *cx, void *ctx)
{
    int32_t end = -1;
    ++*(int *)ctx;
    ANSWERS(asx_task_join(cx->rt, cx->task, cx->task, &end), ASX_E_INVALID_ARGUMENT);
    EQUAL(end, -1);
    return ASX_POLL_READY;
}

static void own_codes_and_self_joins(void)
{
    asx_runtime *rt = runtime();
    asx_task_id task;
    asx_task_info info;
    char text[16];
    int polls = 0;

    task = spawn(rt, root(rt), fails_with_its_own_code, NULL);
    run(rt, 0);
    EQUAL(outcome(rt, task), ASX_OUTCOME_ERR);
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_task_get_info(rt, task, &info));
    EQUAL(info.error, -1);
    OK(asx_task_get_text(rt, task, ASX_TEXT_OUTCOME, text, sizeof text, NULL));
    EQUAL(strcmp(text, "code 5"), 0);
    task = spawn(rt, root(rt), joins_itself, &polls);
    run(rt, 0);
    EQUAL(polls, 1);
    EQUAL(outcome(rt, task), ASX_OUTCOME_OK);
    OK(asx_runtime_destroy(rt));
}

enum { TIED = 4 };
static asx_task_id tied[TIED];
static int tied_order[2 * TIED], tied_polls;

static int32_t writes_its_number(asx_cx *cx, void *ctx)
{
    int i;
    for (i = 0; i < TIED; ++i)
        if (tied[i].generation && asx_same_task(tied[i], cx->task))
            tied_order[tied_polls++] = i;
    (void)ctx;
    return ASX_POLL_PENDING;
}

/* Equal tasks that were woken in another order than they were spawned in: R-50. */
static void ties(int32_t tie_break, const int *expected)
{
    static const int woken[TIED] = { 2, 0, 3, 1 };
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    int i;

    /* The default is not written, but asked for. */
    if (tie_break == -1)
        EQUAL(config.tie_break, ASX_TIE_TASK_KEY);
    else
        config.tie_break = tie_break;
    rt = runtime_of(&config);
    for (i = 0; i < TIED; ++i)
        tied[i] = spawn(rt, root(rt), writes_its_number, NULL);
    run(rt, 0);
    tied_polls = 0;
    for (i = 0; i < TIED; ++i)
        OK(asx_task_wake(rt, tied[woken[i]]));
    run(rt, 0);
    EQUAL(tied_polls, TIED);
    for (i = 0; i < TIED; ++i)
        EQUAL(tied_order[i], expected[i]);
    OK(asx_runtime_destroy(rt));
}

static void tie_breaks(void)
{
    static const int by_key[TIED] = { 0, 1, 2, 3 }, by_arrival[TIED] = { 2, 0, 3, 1 };
    ties(-1, by_key);
    ties(ASX_TIE_TASK_KEY, by_key);
    ties(ASX_TIE_FIFO, by_arrival);
}

static int32_t joins(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    int32_t end = -1;
    asx_status status = asx_task_join(rt, task, *(asx_task_id *)ctx, &end);
    if (status == ASX_E_WOULD_BLOCK)
        return ASX_POLL_PENDING;
    EQUAL(end, ASX_OUTCOME_ERR);
    return ASX_POLL_READY;
}

static void failures(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    asx_region_options options = ASX_REGION_OPTIONS_INIT;
    asx_region_info info;
    asx_task_info task;
    asx_task_id failing, sibling, joiner;
    int polls = 0;
    char text[64];
    size_t size = 0;

    options.policy = ASX_POLICY_FAIL_FAST;
    OK(asx_region_open(rt, root(rt), &options, &region));
    sibling = spawn(rt, region, park, &polls);
    failing = spawn(rt, region, fails, NULL);
    joiner = spawn(rt, root(rt), joins, &failing);
    OK(asx_region_end(rt, region));
    run(rt, 0);
    EQUAL(outcome(rt, failing), ASX_OUTCOME_ERR);
    EQUAL(outcome(rt, sibling), ASX_OUTCOME_CANCELLED);
    EQUAL(outcome(rt, joiner), ASX_OUTCOME_OK);
    OK(asx_task_get_text(rt, failing, ASX_TEXT_OUTCOME, text, sizeof text, &size));
    EQUAL(strcmp(text, "no line"), 0);
    task.struct_size = (uint32_t)sizeof task;
    OK(asx_task_get_info(rt, failing, &task));
    EQUAL(task.error, ASX_E_DISCONNECTED);
    ANSWERS(asx_task_get_text(rt, failing, ASX_TEXT_OUTCOME, text, 3, &size), ASX_E_FULL);
    EQUAL(strcmp(text, "no"), 0);
    EQUAL(size, 7);
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_region_get_info(rt, region, &info));
    EQUAL(info.state, ASX_REGION_CLOSED);
    EQUAL(info.outcome, ASX_OUTCOME_CANCELLED);
    EQUAL(info.first_cause, ASX_OUTCOME_ERR);
    ANSWERS(asx_task_spawn(rt, region, asx_poll_with(fails, NULL), NULL, &failing),
        ASX_E_REGION_NOT_OPEN);
    finish(rt);
}

/* The order in which finalizers run. */
struct order {
    int *next;
    int got;
};

static int32_t in_order(asx_cx *cx, void *ctx)
{
    (void)cx;
    struct order *order = (struct order *)ctx;
    order->got = (*order->next)++;
    return ASX_POLL_READY;
}

struct late {
    asx_region_id region;
    int polls;
};

/* A finalizer that spawns another, which can be woken from outside before it was polled. */
static int32_t spawns_another(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    struct late *late = (struct late *)ctx;
    asx_body body = asx_poll_with(ready, &late->polls);
    asx_task_id other;
    OK(asx_region_spawn_finalizer(rt, late->region, body, &other));
    OK(asx_external_wake(rt, other));
    return ASX_POLL_READY;
}

static void late_finalizers(void)
{
    asx_runtime *rt = runtime();
    struct late late;

    late.polls = 0;
    OK(asx_region_open(rt, root(rt), NULL, &late.region));
    OK(asx_region_defer(rt, late.region, asx_poll_with(spawns_another, &late)));
    OK(asx_region_close(rt, late.region, ASX_CANCEL_USER, NULL, ASX_NONE, NULL));
    run(rt, 0);
    EQUAL(late.polls, 1);
    OK(asx_region_release(rt, late.region));
    finish(rt);
}

static void finalizers(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    int next = 1;
    struct order a = { 0, 0 }, b = { 0, 0 };

    a.next = b.next = &next;
    OK(asx_region_open(rt, root(rt), NULL, &region));
    OK(asx_region_defer(rt, region, asx_poll_with(in_order, &a)));
    OK(asx_region_defer(rt, region, asx_poll_with(in_order, &b)));
    OK(asx_region_close(rt, region, ASX_CANCEL_USER, NULL, ASX_NONE, NULL));
    run(rt, 0);
    EQUAL(a.got, 2);
    EQUAL(b.got, 1);
    OK(asx_region_release(rt, region));
    ANSWERS(asx_region_end(rt, region), ASX_E_STALE_HANDLE);
    finish(rt);
}

static void obligations(void)
{
    asx_runtime *rt = runtime();
    asx_obligation_id kept, left;
    asx_region_id region;
    asx_diagnosis diagnosis;
    int32_t state = -1;

    OK(asx_region_open(rt, root(rt), NULL, &region));
    OK(asx_obligation_reserve(rt, region, &kept));
    OK(asx_obligation_reserve(rt, region, &left));
    OK(asx_obligation_commit(rt, kept));
    ANSWERS(asx_obligation_abort(rt, kept), ASX_E_OBLIGATION_ALREADY_RESOLVED);
    diagnosis.struct_size = (uint32_t)sizeof diagnosis;
    ANSWERS(asx_quiescent(rt, &diagnosis), ASX_E_OBLIGATIONS_UNRESOLVED);
    EQUAL(diagnosis.obligations, 1);
    EQUAL(diagnosis.regions, 2);
    OK(asx_region_close(rt, region, ASX_CANCEL_USER, NULL, ASX_NONE, NULL));
    OK(asx_obligation_state(rt, left, &state));
    EQUAL(state, ASX_OBLIGATION_LEAKED);
    finish(rt);
}

static void timers(void)
{
    asx_runtime *rt = runtime();
    int polls = 0;
    int32_t cancelled = -1;
    uint64_t next = 0;
    asx_timer_handle timer, again;
    asx_timer_info info;
    asx_task_id task = spawn(rt, root(rt), park, &polls);

    run(rt, 0);
    OK(asx_region_timer_arm(rt, root(rt), asx_after(5 * MS), &task, &timer));
    OK(asx_region_timer_update(rt, timer, root(rt), asx_at(7 * MS), &task, &again));
    OK(asx_region_timer_cancel(rt, timer, &cancelled));
    EQUAL(cancelled, 0);
    OK(asx_next_deadline(rt, &next));
    EQUAL(next, 7 * MS);
    run(rt, 6 * MS);
    EQUAL(polls, 1);
    run(rt, 7 * MS);
    EQUAL(polls, 2);
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_region_timer_get_info(rt, again, &info));
    EQUAL(info.level, ASX_TIMER_GONE);
    ANSWERS(asx_next_deadline(rt, &next), ASX_E_EMPTY);
    ANSWERS(asx_region_timer_arm(rt, root(rt), asx_after(UINT64_MAX), NULL, &timer),
        ASX_E_TIMER_DURATION_EXCEEDED);
    finish(rt);
}

struct element {
    uint32_t number;
    char word[12];
};

static void channels(void)
{
    asx_runtime *rt = runtime();
    asx_channel_id channel;
    asx_send_permit permit;
    asx_channel_info info;
    struct element in = { 1, "one" }, out = { 0, "" };
    int32_t evicted = -1;

    ANSWERS(make_channel(rt, NULL, 0, 4, &channel), ASX_E_INVALID_ARGUMENT);
    ANSWERS(make_channel(rt, NULL, SIZE_MAX, 4, &channel), ASX_E_RESOURCE_EXHAUSTED);
    ANSWERS(make_channel(rt, NULL, 4, SIZE_MAX, &channel), ASX_E_INVALID_ARGUMENT);
    OK(make_channel(rt, NULL, 2, sizeof in, &channel));
    ANSWERS(asx_channel_try_send(SENDER(rt, channel), NULL), ASX_E_INVALID_ARGUMENT);
    OK(asx_channel_try_send(SENDER(rt, channel), &in));
    OK(asx_channel_try_reserve(SENDER(rt, channel), NULL, 0, &permit));
    ANSWERS(asx_channel_try_send(SENDER(rt, channel), &in), ASX_E_FULL);
    in.number = 2;
    ANSWERS(asx_send_permit_send(&permit, NULL), ASX_E_INVALID_ARGUMENT);
    OK(asx_send_permit_send(&permit, &in));
    ANSWERS(asx_send_permit_send(&permit, &in), ASX_E_OBLIGATION_ALREADY_RESOLVED);
    ANSWERS(asx_send_permit_try_abort(&permit), ASX_E_OBLIGATION_ALREADY_RESOLVED);
    in.number = 3;
    OK(asx_channel_evict(SENDER(rt, channel), &in, &out, &evicted));
    EQUAL(evicted, 1);
    EQUAL(out.number, 1);
    EQUAL(strcmp(out.word, "one"), 0);
    OK(asx_channel_sender_close(SENDER(rt, channel)));
    ANSWERS(asx_channel_sender_close(SENDER(rt, channel)), ASX_E_DISCONNECTED);
    OK(asx_channel_try_recv(RECEIVER(rt, channel), &out));
    EQUAL(out.number, 2);
    OK(asx_channel_try_recv(RECEIVER(rt, channel), &out));
    EQUAL(out.number, 3);
    ANSWERS(asx_channel_try_recv(RECEIVER(rt, channel), &out), ASX_E_DISCONNECTED);
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_channel_get_info(rt, channel, &info));
    EQUAL(info.state, ASX_CHANNEL_SENDER_CLOSED);
    OK(asx_channel_receiver_close(RECEIVER(rt, channel)));
    /* Its bytes are gone, the channel is not. */
    ANSWERS(asx_channel_try_send(SENDER(rt, channel), &in), ASX_E_DISCONNECTED);
    ANSWERS(asx_channel_evict(SENDER(rt, channel), &in, NULL, NULL), ASX_E_DISCONNECTED);
    ANSWERS(asx_channel_try_recv(RECEIVER(rt, channel), &out), ASX_E_DISCONNECTED);
    OK(asx_channel_release(rt, channel));
    ANSWERS(asx_channel_get_info(rt, channel, &info), ASX_E_STALE_HANDLE);
    finish(rt);
}

static void texts(void)
{
    asx_runtime *rt = runtime();
    char text[4096];
    size_t size = 0, read = 0;
    asx_event events[64];
    asx_journal_info info;
    int polls = 0;

    spawn(rt, root(rt), park, &polls);
    run(rt, 0);
    OK(asx_dump(rt, text, sizeof text, &size));
    EQUAL(strstr(text, "Running") != NULL, 1);
    ANSWERS(asx_dump(rt, text, 4, &size), ASX_E_FULL);
    ANSWERS(asx_dump(rt, NULL, 0, &size), ASX_E_FULL);
    OK(asx_verify(rt, text, sizeof text, &size));
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_journal_get_info(rt, &info));
    OK(asx_journal_read(rt, 0, events, 64, &read));
    EQUAL(read, info.recorded);
    EQUAL(events[0].kind, 1);
    EQUAL(strcmp(asx_event_name(events[0].kind), "region_opened"), 0);
    OK(asx_journal_read(rt, info.recorded - 1, events, 64, &read));
    EQUAL(read, 1);
    OK(asx_journal_line(rt, 1, text, sizeof text, &size));
    EQUAL(strstr(text, "task_spawned") != NULL, 1);
    ANSWERS(asx_journal_line(rt, 1000, text, sizeof text, &size), ASX_E_EMPTY);
    finish(rt);
}

static int32_t steps_inside(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    (void)ctx;
    ANSWERS(asx_step(rt, 0, 1, NULL), ASX_E_REENTRANT);
    ANSWERS(asx_run_until_idle(rt, 0, NULL), ASX_E_REENTRANT);
    ANSWERS(asx_runtime_destroy(rt), ASX_E_REENTRANT);
    verify(rt);
    return ASX_POLL_READY;
}

static asx_runtime *in_drop, *beside;
static asx_task_id dropping;
static int dropped;

/* Arguments come first; another runtime may be used, and a wake from outside may come. */
static void calls_inside(void *ctx)
{
    int polls = 0;
    (void)ctx;
    ANSWERS(asx_soft_stop(in_drop), ASX_E_REENTRANT);
    ANSWERS(asx_step(in_drop, 0, 1, NULL), ASX_E_REENTRANT);
    ANSWERS(asx_runtime_destroy(in_drop), ASX_E_REENTRANT);
    ANSWERS(asx_now(in_drop, NULL), ASX_E_INVALID_ARGUMENT);
    OK(asx_external_wake(in_drop, dropping));
    spawn(beside, root(beside), ready, &polls);
    EQUAL(run(beside, 0), 1);
    ++dropped;
}

static void reentrancy(void)
{
    asx_body body = { steps_inside, NULL, calls_inside };
    in_drop = runtime();
    beside = runtime();
    OK(asx_task_spawn(in_drop, root(in_drop), body, NULL, &dropping));
    EQUAL(run(in_drop, 0), 1);
    EQUAL(dropped, 1);
    finish(in_drop);
    finish(beside);
}

/* What lives when a runtime goes is dropped, entries and finalizers too, which are polled before. */
static void ends(void)
{
    asx_runtime *rt = runtime();
    int drops = 0;
    asx_body body = { ready, &drops, count };
    asx_task_id task;

    body.poll = park;
    OK(asx_task_spawn(rt, root(rt), body, NULL, &task));
    OK(asx_task_push_cleanup(rt, task, body));
    OK(asx_region_defer(rt, root(rt), body));
    OK(asx_runtime_destroy(rt));
    EQUAL(drops, 3 + 2);
}

static void same_again(void)
{
    uint64_t digests[2];
    int i;
    for (i = 0; i < 2; ++i) {
        asx_runtime *rt = runtime();
        int polls = 0;
        spawn(rt, root(rt), ready, &polls);
        spawn(rt, root(rt), park, &polls);
        run(rt, 3 * MS);
        digests[i] = digest(rt);
        finish(rt);
    }
    EQUAL(digests[0], digests[1]);
}

int main(void)
{
    names();
    configurations();
    tasks();
    forced_ends();
    gone_in_its_poll();
    clocks();
    giants();
    cancels();
    failures();
    own_codes_and_self_joins();
    tie_breaks();
    finalizers();
    late_finalizers();
    obligations();
    timers();
    channels();
    if (has(ASX_FEATURE_JOURNAL) && has(ASX_FEATURE_NAMES) && has(ASX_FEATURE_DUMP))
        texts();
    reentrancy();
    ends();
    same_again();
    puts("basics: ok");
    return 0;
}
