/* The profiles: one meaning, different resources. Without Rust's std only (see main). */
#include "stage.h"

static size_t allocations;

static void *counted_alloc(void *hook, size_t size)
{
    (void)hook;
    ++allocations;
    return malloc(size);
}

static void counted_free(void *hook, void *pointer)
{
    (void)hook;
    free(pointer);
}

static void same_digest_in_all(void)
{
    int32_t profile;
    uint64_t first = 0;
    for (profile = ASX_PROFILE_CORE; profile <= ASX_PROFILE_AUTOMOTIVE; ++profile) {
        asx_runtime_config config = config_of(profile);
        asx_runtime *rt = runtime_of(&config);
        int i;
        for (i = 0; i < 10; ++i)
            round_of(rt, (uint64_t)i * 10 * MS);
        if (profile == ASX_PROFILE_CORE)
            first = digest(rt);
        EQUAL(digest(rt), first);
        OK(asx_runtime_destroy(rt));
    }
}

static void nothing_is_allocated_after_creation(asx_runtime *rt)
{
    size_t before = allocations;
    asx_stats stats;
    int i;
    for (i = 0; i < 300; ++i)
        round_of(rt, (uint64_t)i * 10 * MS);
    finish(rt);
    (void)stats;
    EQUAL(allocations, before);
}

static void pools(void)
{
    static unsigned char room[(1 << 20) + 16];
    unsigned char *memory = room + (16 - (uintptr_t)room % 16) % 16;
    size_t size = sizeof room - 16;
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt = runtime_of(&config), *other = NULL;
    asx_stats stats;
    size_t before;
    uint64_t needed;

    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.pool_size > 0 && stats.pool_used < stats.pool_size, 1);
    printf("embedded: %" PRIu64 " bytes reserved, %" PRIu64 " used at creation\n",
        stats.pool_size, stats.pool_used);
    nothing_is_allocated_after_creation(rt);

    config = config_of(ASX_PROFILE_AUTOMOTIVE);
    nothing_is_allocated_after_creation(runtime_of(&config));

    /* In memory of the program's own, not even the creation allocates. */
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.pool_memory = memory + 1;
    config.pool_bytes = size;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    config.pool_memory = memory;
    config.pool_bytes = 64;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_RESOURCE_EXHAUSTED);
    /* Memory without its size, or without a pool to use it, is a mistake. */
    config.pool_bytes = 0;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    config.pool_bytes = size;
    config.flags &= ~(uint32_t)ASX_FLAG_POOL;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    /* So is strictness without a pool. */
    config.pool_memory = NULL;
    config.pool_bytes = 0;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    config.pool_memory = memory;
    config.pool_bytes = size;
    config.flags |= ASX_FLAG_POOL;
    OK(asx_runtime_config_pool_size(&config, &needed));
    EQUAL(needed > stats.pool_peak && needed <= size, 1);
    config.pool_bytes = needed;
    before = allocations;
    rt = runtime_of(&config);
    nothing_is_allocated_after_creation(rt);
    EQUAL(allocations, before);
    config = config_of(ASX_PROFILE_CORE);
    ANSWERS(asx_runtime_config_pool_size(&config, &needed), ASX_E_INVALID_ARGUMENT);

    /* Two pooled runtimes side by side. */
    config = config_of(ASX_PROFILE_EMBEDDED);
    rt = runtime_of(&config);
    other = runtime_of(&config);
    round_of(rt, 0);
    round_of(other, 0);
    EQUAL(digest(rt), digest(other));
    OK(asx_runtime_destroy(rt));
    round_of(other, 10 * MS);
    OK(asx_runtime_destroy(other));
}

static int32_t forever(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    (void)ctx;
    if (asx_checkpoint(cx) != ASX_OK)
        return ASX_POLL_CANCELLED;
    OK(asx_task_wake(rt, task));
    return ASX_POLL_PENDING;
}

static int32_t silent(asx_cx *cx, void *ctx)
{
    (void)ctx;
    return asx_checkpoint(cx) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
}

/* Limits are reached by an answer, not by a crash; what is given back can be had again. */
static void limits(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt = runtime_of(&config);
    asx_task_id task = { 0, 0 }, tasks[64];
    asx_channel_id channel;
    asx_timer_handle timer;
    asx_obligation_id obligation;
    asx_stats stats;
    size_t before = allocations;
    int i, made;

    for (made = 0; made < 1000; ++made)
        if (asx_task_spawn(rt, root(rt), asx_poll_with(silent, NULL), NULL, &task) != ASX_OK)
            break;
        else
            tasks[made] = task;
    EQUAL(made, config.max_tasks);
    ANSWERS(asx_task_spawn(rt, root(rt), asx_poll_with(silent, NULL), NULL, &task),
        ASX_E_RESOURCE_EXHAUSTED);
    for (i = 0; i < 1000 && make_channel(rt, NULL, 4, 8, &channel) == ASX_OK; ++i)
        ;
    EQUAL(i, config.max_channels);
    for (i = 0; i < 1000 && asx_region_timer_arm(rt, root(rt), asx_after(MS), NULL, &timer) == ASX_OK; ++i)
        ;
    EQUAL(i, config.max_timers);
    for (i = 0; i < 1000 && asx_obligation_reserve(rt, root(rt), &obligation) == ASX_OK; ++i)
        ;
    EQUAL(i, config.max_obligations);
    drain(rt, 0);
    for (i = 0; i < made; ++i)
        OK(asx_task_cancel(rt, tasks[i], ASX_CANCEL_USER, "a limit is no trap", NULL));
    drain(rt, 0);
    for (i = 0; i < made; ++i)
        OK(asx_task_release(rt, tasks[i]));
    OK(asx_task_spawn(rt, root(rt), asx_poll_with(silent, NULL), NULL, &task));
    verify(rt);
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.pool_spills, 0);
    printf("embedded: at the limits %" PRIu64 " of %" PRIu64 " bytes were used\n",
        stats.pool_peak, stats.pool_size);
    OK(asx_runtime_destroy(rt));
    EQUAL(allocations, before);
}

/* A pool that is too small for its limits refuses; nothing aborts. */
static void small_pools(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt;
    asx_task_id task;
    int made;
    config.pool_bytes = 512 * 1024;
    config.max_tasks = 10000;
    config.max_ready = 10000;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_RESOURCE_EXHAUSTED);
    /* Tasks that are over count no more, but are kept until they are released. */
    config = config_of(ASX_PROFILE_EMBEDDED);
    rt = runtime_of(&config);
    for (made = 0; made < 10000; ++made) {
        if (asx_task_spawn_failed(rt, root(rt), -1, "a text", &task) != ASX_OK)
            break;
    }
    EQUAL(made > 100 && made < 10000, 1);
    verify(rt);
    OK(asx_runtime_destroy(rt));
}

/* No call does more than its bound, and those that had more to do are counted. */
static void bounded_steps(void)
{
    int32_t profile;
    for (profile = ASX_PROFILE_EMBEDDED; profile <= ASX_PROFILE_AUTOMOTIVE; ++profile) {
        asx_runtime_config config = config_of(profile);
        asx_runtime *rt = runtime_of(&config);
        asx_progress progress;
        asx_stats stats;

        progress.struct_size = (uint32_t)sizeof progress;
        stats.struct_size = (uint32_t)sizeof stats;
        spawn(rt, root(rt), forever, NULL);
        OK(asx_step(rt, 0, UINT64_MAX, &progress));
        EQUAL(progress.polls, config.max_steps);
        EQUAL(progress.idle, 0);
        ANSWERS(asx_run_until_idle(rt, 0, &progress), ASX_E_RESOURCE_EXHAUSTED);
        EQUAL(progress.polls, config.max_steps);
        OK(asx_get_stats(rt, &stats));
        EQUAL(stats.overruns, 2);
        OK(asx_runtime_destroy(rt));
    }
}

/* Timers are bounded by the same number: what is left over is due at the next call. */
static void bounded_timers(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt;
    asx_progress progress;
    asx_queues_info queues;
    asx_timer_handle timer;
    uint64_t fired = 0, left;
    int i;

    progress.struct_size = (uint32_t)sizeof progress;
    queues.struct_size = (uint32_t)sizeof queues;
    config.max_steps = 8;
    rt = runtime_of(&config);
    for (i = 0; i < 20; ++i)
        OK(asx_region_timer_arm(rt, root(rt), asx_after(MS), NULL, &timer));
    for (left = 12; left > 0; left = left > 8 ? left - 8 : 0) {
        OK(asx_step(rt, MS, UINT64_MAX, &progress));
        OK(asx_get_queues(rt, &queues));
        EQUAL(queues.timers, left);
        EQUAL(progress.idle, 0);
        EQUAL(progress.next_deadline, MS);
    }
    OK(asx_fire_timers(rt, &fired));
    EQUAL(fired, 4);
    OK(asx_get_queues(rt, &queues));
    EQUAL(queues.timers, 0);
    OK(asx_runtime_destroy(rt));
}

static int warnings;

static void on_log(void *hook, int32_t level, const char *text, size_t size)
{
    (void)hook;
    EQUAL(strlen(text), size);
    warnings += level == ASX_LOG_WARN && strstr(text, "watchdog") != NULL;
}

/* A task that is not kicked is asked to stop, at the same instant in every run. */
static void watchdogs(void)
{
    uint64_t digests[2];
    int i;
    for (i = 0; i < 2; ++i) {
        asx_runtime_config config = config_of(ASX_PROFILE_AUTOMOTIVE);
        asx_runtime *rt;
        asx_task_id stuck, kicked, own;
        asx_task_options options = ASX_TASK_OPTIONS_INIT;
        asx_stats stats;
        uint64_t next;

        config.log = on_log;
        rt = runtime_of(&config);
        stuck = spawn(rt, root(rt), silent, NULL);
        kicked = spawn(rt, root(rt), silent, NULL);
        options.flags = 0;
        OK(asx_task_spawn(rt, root(rt), asx_poll_with(silent, NULL), &options, &own));
        drain(rt, 0);
        drain(rt, 60 * MS);
        OK(asx_task_kick_watchdog(rt, kicked));
        OK(asx_next_deadline(rt, &next));
        EQUAL(next, 100 * MS);
        drain(rt, 99 * MS);
        ANSWERS(asx_task_kick_watchdog(rt, (asx_task_id){ 0, 0 }), ASX_E_INVALID_ARGUMENT);
        drain(rt, 100 * MS);
        EQUAL(outcome(rt, stuck), ASX_OUTCOME_CANCELLED);
        ANSWERS(asx_task_kick_watchdog(rt, stuck), ASX_E_INVALID_TRANSITION);
        stats.struct_size = (uint32_t)sizeof stats;
        OK(asx_get_stats(rt, &stats));
        EQUAL(stats.watchdogs, 1);
        EQUAL(warnings, has(ASX_FEATURE_DUMP) ? i + 1 : 0);
        OK(asx_task_set_watchdog(rt, kicked, ASX_NONE, ASX_NONE));
        drain(rt, 1000 * MS);
        OK(asx_get_stats(rt, &stats));
        EQUAL(stats.watchdogs, 1);
        digests[i] = digest(rt);
        OK(asx_runtime_destroy(rt));
    }
    EQUAL(digests[0], digests[1]);
}

static char logged[4][64];
static int lines;

static void keep_line(void *hook, int32_t level, const char *text, size_t size)
{
    (void)hook;
    (void)level;
    (void)size;
    if (lines < 4)
        strncpy(logged[lines++], text, sizeof logged[0] - 1);
}

/* Watchdogs that find the cancel queue full stay due; lines come in the order of what happened. */
static void watchdogs_degrade_in_order(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_AUTOMOTIVE);
    asx_runtime *rt;
    asx_task_id tasks[3];
    asx_stats stats;
    uint64_t fired, next;
    int i;

    config.log = keep_line;
    config.max_cancel = 1;
    rt = runtime_of(&config);
    for (i = 0; i < 3; ++i)
        tasks[i] = spawn(rt, root(rt), silent, NULL);
    drain(rt, 0);
    OK(asx_advance(rt, 100 * MS));
    OK(asx_fire_timers(rt, &fired));
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.watchdogs, 1);
    OK(asx_next_deadline(rt, &next));
    EQUAL(next, 100 * MS);
    drain(rt, 100 * MS);
    for (i = 0; i < 3; ++i)
        EQUAL(outcome(rt, tasks[i]), ASX_OUTCOME_CANCELLED);
    EQUAL(lines, has(ASX_FEATURE_DUMP) ? 3 : 0);
    if (lines > 0)
        EQUAL(strcmp(logged[0], logged[1]) < 0 && strcmp(logged[1], logged[2]) < 0, 1);
    OK(asx_runtime_destroy(rt));
}

int main(void)
{
    OK(asx_set_allocator(counted_alloc, counted_free, NULL));
    ANSWERS(asx_set_allocator(counted_alloc, counted_free, NULL), ASX_E_INVALID_TRANSITION);
    ANSWERS(asx_set_allocator(NULL, counted_free, NULL), ASX_E_INVALID_ARGUMENT);
    same_digest_in_all();
    pools();
    limits();
    small_pools();
    bounded_steps();
    bounded_timers();
    watchdogs();
    watchdogs_degrade_in_order();
    puts("profiles: ok");
    return 0;
}
