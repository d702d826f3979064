/* What the embedded build leaves out is missed in a defined way, and everything else is there. */
#include "check.h"

struct told {
    int ghosts, lines;
    char call[32];
};

static void ghost(void *hook, const asx_ghost *ghost)
{
    struct told *told = hook;
    told->ghosts++;
    strncpy(told->call, ghost->call, sizeof told->call - 1);
}

static void line(void *hook, int32_t level, const char *text, size_t size)
{
    struct told *told = hook;
    (void)level, (void)text, (void)size;
    told->lines++;
}

static int32_t forever(asx_cx *cx, void *ctx)
{
    (void)ctx;
    if (asx_checkpoint(cx) == ASX_E_CANCELLED)
        return ASX_POLL_CANCELLED;
    return ASX_POLL_PENDING;
}

static void names(void)
{
    EQUAL(asx_features(), 0);
    EQUAL(asx_version(), ASX_VERSION);
    EQUAL(strcmp(asx_status_name(ASX_E_STALE_HANDLE), "UNKNOWN"), 0);
    EQUAL(strcmp(asx_status_str(ASX_E_STALE_HANDLE), "This build has no names."), 0);
    EQUAL(strcmp(asx_event_name(1), "unknown"), 0);
    EQUAL(strcmp(asx_value_name(1), "unknown"), 0);
}

/* As if ASX_FLAG_NO_JOURNAL were set. */
static void journal(asx_runtime *rt)
{
    asx_journal_info info;
    asx_event event;
    uint64_t digest = 7;
    size_t count = 7;
    char text[64];

    info.struct_size = (uint32_t)sizeof info;
    OK(asx_journal_get_info(rt, &info));
    EQUAL(info.recorded, 0);
    EQUAL(info.retained, 0);
    ANSWERS(asx_journal_digest(rt, &digest), ASX_E_EMPTY);
    EQUAL(digest, 7);
    OK(asx_journal_read(rt, 0, &event, 1, &count));
    EQUAL(count, 0);
    ANSWERS(asx_journal_line(rt, 0, text, sizeof text, NULL), ASX_E_EMPTY);
    /* Bad arguments are still what is told first. */
    ANSWERS(asx_journal_digest(rt, NULL), ASX_E_INVALID_ARGUMENT);
}

static void dumps(asx_runtime *rt)
{
    char text[64] = "as it was";
    size_t size = 7;
    ANSWERS(asx_dump(rt, text, sizeof text, &size), ASX_E_CAPABILITY_DENIED);
    ANSWERS(asx_verify(rt, text, sizeof text, &size), ASX_E_CAPABILITY_DENIED);
    ANSWERS(asx_dump(rt, NULL, 8, NULL), ASX_E_INVALID_ARGUMENT);
    EQUAL(strcmp(text, "as it was"), 0);
    EQUAL(size, 7);
}

/* Ghosts are counted and reported; the call has no name. Watchdogs bite, and log nothing. */
static void hooks(int32_t profile)
{
    struct told told = { 0, 0, "" };
    asx_runtime_config config = config_of(profile);
    asx_runtime *rt;
    asx_task_id task;
    asx_stats stats;

    config.flags |= ASX_FLAG_GHOSTS;
    config.hook = &told;
    config.ghost = ghost;
    config.log = line;
    config.watchdog_ns = 10 * MS;
    rt = runtime_of(&config);
    task = spawn(rt, root(rt), forever, NULL);
    run(rt, 0);
    run(rt, 20 * MS);
    EQUAL(outcome(rt, task), ASX_OUTCOME_CANCELLED);
    OK(asx_task_release(rt, task));
    ANSWERS(asx_task_wake(rt, task), ASX_E_STALE_HANDLE);
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.watchdogs, 1);
    EQUAL(told.ghosts, 1);
    EQUAL(strcmp(told.call, "asx"), 0);
    EQUAL(told.lines, 0);
    journal(rt);
    dumps(rt);
    finish(rt);
}

/* Nothing is kept for a journal that is not there. */
static void pools(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    uint64_t with, without;
    OK(asx_runtime_config_pool_size(&config, &with));
    config.max_trace = 0;
    OK(asx_runtime_config_pool_size(&config, &without));
    EQUAL(with, without);
    /* A journal that refuses new work when it is full is never full. */
    config.trace_full = ASX_TRACE_REFUSE;
    finish(runtime_of(&config));
}

int main(void)
{
    int32_t profile;
    names();
    pools();
    for (profile = ASX_PROFILE_CORE; profile <= ASX_PROFILE_AUTOMOTIVE; ++profile)
        hooks(profile);
    puts("embedded: ok");
    return 0;
}
