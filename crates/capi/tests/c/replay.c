/* A run is compared with a recorded one: equal, different, too short, and without a trace. */
#include "check.h"

enum { ROOM = 256 };

static int32_t yields(asx_cx *cx, void *ctx)
{
    int *left = ctx;
    if ((*left)-- == 0)
        return ASX_POLL_READY;
    OK(asx_task_wake(cx->rt, cx->task));
    return ASX_POLL_PENDING;
}

/* A runtime whose tasks yield so often. */
static asx_runtime *begin(int *left, uint64_t max_trace)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    config.max_trace = max_trace;
    rt = runtime_of(&config);
    spawn(rt, root(rt), yields, &left[0]);
    spawn(rt, root(rt), yields, &left[1]);
    return rt;
}

static size_t record(int one, int other, asx_event *events, uint64_t *value)
{
    int left[2];
    size_t count = 0;
    asx_runtime *rt;
    left[0] = one, left[1] = other;
    rt = begin(left, ROOM);
    run(rt, 0);
    OK(asx_journal_read(rt, 0, events, ROOM, &count));
    *value = digest(rt);
    OK(asx_runtime_destroy(rt));
    return count;
}

/* Step by step: every event is compared once. */
static void equal_runs(const asx_event *events, size_t count, uint64_t value)
{
    int left[2] = { 2, 3 }, steps = 0;
    asx_runtime *rt = begin(left, ROOM);
    uint64_t next = 0;
    asx_progress progress;
    progress.struct_size = (uint32_t)sizeof progress;
    do {
        OK(asx_step(rt, 0, 1, &progress));
        OK(asx_replay_compare(rt, events, count, next, 0, &next, NULL));
        ++steps;
    } while (!progress.idle);
    EQUAL(steps, 7);
    EQUAL(next, count);
    OK(asx_replay_compare(rt, events, count, next, 1, &next, NULL));
    OK(asx_replay_check_digest(rt, value));
    ANSWERS(asx_replay_check_digest(rt, value + 1), ASX_E_DETERMINISM_VIOLATION);
    OK(asx_runtime_destroy(rt));
}

static void different_runs(const asx_event *events, size_t count, uint64_t value)
{
    int left[2] = { 2, 2 };
    asx_runtime *rt = begin(left, ROOM);
    uint64_t next = 0;
    asx_replay_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = (uint32_t)sizeof info;
    run(rt, 0);
    ANSWERS(asx_replay_compare(rt, events, count, 0, 1, &next, &info), ASX_E_REPLAY_MISMATCH);
    EQUAL(info.compared, next);
    EQUAL(next < count, 1);
    EQUAL(info.has_recorded, 1);
    EQUAL(info.recorded.seq, next);
    EQUAL(info.has_actual, 1);
    EQUAL(info.actual.seq, next);
    EQUAL(memcmp(&info.recorded, &events[next], sizeof *events), 0);
    EQUAL(memcmp(&info.recorded, &info.actual, sizeof *events) != 0, 1);
    ANSWERS(asx_replay_check_digest(rt, value), ASX_E_DETERMINISM_VIOLATION);
    OK(asx_runtime_destroy(rt));
}

/* A run that stops early lacks events only when it is said to be over. */
static void short_runs(const asx_event *events, size_t count)
{
    int left[2] = { 2, 3 };
    asx_runtime *rt = begin(left, ROOM);
    uint64_t next = 0, more = 0;
    asx_replay_info info;
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_step(rt, 0, 2, NULL));
    OK(asx_replay_compare(rt, events, count, 0, 0, &next, NULL));
    ANSWERS(asx_replay_compare(rt, events, count, next, 1, &more, &info), ASX_E_REPLAY_MISMATCH);
    EQUAL(more, next);
    EQUAL(info.has_actual, 0);
    EQUAL(info.has_recorded, 1);
    /* A recording that ends, and one that begins later. */
    ANSWERS(asx_replay_compare(rt, events, 1, 0, 0, &next, &info), ASX_E_REPLAY_MISMATCH);
    EQUAL(info.has_recorded, 0);
    EQUAL(info.has_actual, 1);
    ANSWERS(asx_replay_compare(rt, events + 1, count - 1, 0, 0, &next, NULL), ASX_E_TRACE_TRUNCATED);
    ANSWERS(asx_replay_compare(rt, NULL, 1, 0, 0, &next, NULL), ASX_E_INVALID_ARGUMENT);
    OK(asx_runtime_destroy(rt));
}

/* Events that are not there any more, and no journal at all. */
static void without_events(const asx_event *events, size_t count)
{
    int left[2] = { 2, 3 };
    asx_runtime *rt = begin(left, 4);
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    uint64_t next = 0;
    run(rt, 0);
    ANSWERS(asx_replay_compare(rt, events, count, 0, 0, &next, NULL), ASX_E_TRACE_TRUNCATED);
    OK(asx_runtime_destroy(rt));
    config.flags |= ASX_FLAG_NO_JOURNAL;
    rt = runtime_of(&config);
    ANSWERS(asx_replay_compare(rt, events, count, 0, 0, &next, NULL), ASX_E_EMPTY);
    ANSWERS(asx_replay_check_digest(rt, 0), ASX_E_EMPTY);
    OK(asx_runtime_destroy(rt));
}

int main(void)
{
    static asx_event events[ROOM];
    uint64_t value = 0;
    size_t count = record(2, 3, events, &value);
    EQUAL(count > 8, 1);
    equal_runs(events, count, value);
    different_runs(events, count, value);
    short_runs(events, count);
    without_events(events, count);
    puts("replay: ok");
    return 0;
}
