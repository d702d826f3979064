/* Memory that is not to be had: what is refused has changed nothing, and the process goes on. */
#include "stage.h"

/* Not every n, but fewer and fewer of them. */
static int sampled;
static unsigned long asked, failing, faults, given, taken;
static int forever;
/* If not 0: as many times of 100, at random. */
static unsigned odds;
static uint64_t draws;
static char told[256];
static char message[4000];

static void *gives(void *hook, size_t size)
{
    (void)hook;
    ++asked;
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    if (odds ? (draws >> 40) % 100 < odds
             : failing && (forever ? asked >= failing : asked == failing)) {
        ++faults;
        return NULL;
    }
    ++given;
    return malloc(size);
}

static void takes(void *hook, void *pointer)
{
    (void)hook;
    ++taken;
    free(pointer);
}

static void logs(void *hook, int32_t level, const char *text, size_t size)
{
    (void)hook;
    (void)level;
    EQUAL(strlen(text), size);
    strncpy(told, text, sizeof told - 1);
}

static int32_t ends(asx_cx *cx, void *ctx)
{
    (void)cx;
    if (ctx)
        ++*(int *)ctx;
    return ASX_POLL_READY;
}

static int32_t waits(asx_cx *cx, void *ctx)
{
    (void)ctx;
    return asx_checkpoint(cx) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
}

static asx_stats stats_of(asx_runtime *rt)
{
    asx_stats stats;
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    return stats;
}

/* From its creation on a strict runtime asks nobody, and finalizers, cleanup entries and borrows
 * end at their limits; all that was taken on runs. */
static void limits(int32_t profile)
{
    asx_runtime_config config = config_of(profile);
    asx_runtime *rt = runtime_of(&config);
    asx_task_id task;
    uint64_t token, before;
    int i, finalized = 0, cleaned = 0;

    asked = faults = 0;
    failing = forever = 1;
    task = spawn(rt, root(rt), waits, NULL);
    before = digest(rt);
    for (i = 0; i < 20000; ++i)
        if (asx_region_defer(rt, root(rt), asx_poll_with(ends, &finalized)) != ASX_OK)
            break;
    EQUAL(i, config.max_finalizers);
    for (i = 0; i < 20000; ++i)
        if (asx_task_push_cleanup(rt, task, asx_poll_with(ends, &cleaned)) != ASX_OK)
            break;
    EQUAL(i, config.max_cleanups);
    for (i = 0; i < 20000; ++i)
        if (asx_borrow_begin(rt, 0, &token) != ASX_OK)
            break;
    EQUAL(i, config.max_borrows);
    ANSWERS(asx_region_defer(rt, root(rt), asx_poll_with(ends, NULL)), ASX_E_RESOURCE_EXHAUSTED);
    ANSWERS(asx_task_push_cleanup(rt, task, asx_poll_with(ends, NULL)), ASX_E_RESOURCE_EXHAUSTED);
    ANSWERS(asx_borrow_begin(rt, 0, &token), ASX_E_RESOURCE_EXHAUSTED);
    EQUAL(digest(rt) == before, 1);
    OK(asx_borrow_end(rt, token));
    OK(asx_borrow_begin(rt, 0, &token));
    verify(rt);
    OK(asx_region_close(rt, root(rt), ASX_CANCEL_USER, NULL, ASX_NONE, NULL));
    while (asx_run_until_idle(rt, 0, NULL) == ASX_E_RESOURCE_EXHAUSTED)
        ;
    EQUAL(finalized, config.max_finalizers);
    EQUAL(cleaned, config.max_cleanups);
    /* A region that is closed says so, though the limit is reached. */
    ANSWERS(asx_region_defer(rt, root(rt), asx_poll_with(ends, NULL)), ASX_E_REGION_NOT_OPEN);
    OK(asx_quiescent(rt, NULL));
    EQUAL(stats_of(rt).pool_spills, 0);
    EQUAL(asked, 0);
    OK(asx_runtime_destroy(rt));
    failing = forever = 0;
}

/* A strict pool that is too small for its limits is refused, and the size that would do is told; of
 * that size it is good. */
static void sizes(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt = NULL;
    uint64_t needed;
    char number[32];

    OK(asx_runtime_config_pool_size(&config, &needed));
    EQUAL(needed < (uint64_t)768 << 10, 1);
    config.log = logs;
    for (config.pool_bytes = 1; config.pool_bytes < needed; config.pool_bytes *= 2) {
        told[0] = 0;
        ANSWERS(asx_runtime_create(&config, &rt), ASX_E_RESOURCE_EXHAUSTED);
        EQUAL(rt == NULL, 1);
        sprintf(number, " %" PRIu64 " ", needed);
        EQUAL(strstr(told, number) != NULL, has(ASX_FEATURE_DUMP));
    }
    config.pool_bytes = needed - 1;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_RESOURCE_EXHAUSTED);
    config.pool_bytes = needed;
    rt = runtime_of(&config);
    round_of(rt, 0);
    OK(asx_runtime_destroy(rt));
    EQUAL(given, taken);
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A strict pool of the size that is told holds as much of everything as its limits say, at once, in
 * a tree as deep as it can be, and all of it can then be closed. The allocator has nothing. */
static void filled(const asx_runtime_config *limits)
{
    asx_runtime_config config = *limits;
    asx_runtime *rt;
    asx_region_id region;
    asx_task_id task = { 0, 0 };
    asx_obligation_id obligation;
    asx_channel_id channel;
    asx_timer_handle timer;
    asx_progress progress;
    uint64_t i, n, token, finalizers = 0, cleanups = 0, stops = 0;
    int32_t cancelled;

    OK(asx_runtime_config_pool_size(&config, &config.pool_bytes));
    rt = runtime_of(&config);
    asked = 0;
    failing = forever = 1;
    region = root(rt);
    /* Timers of many instants, armed together and cancelled together. */
    for (i = 0; i < 200; ++i) {
        static asx_timer_handle timers[2048];
        for (n = 0; n < config.max_timers; ++n)
            OK(asx_region_timer_arm(rt, region, asx_after(i * 7919 % 100000 * MS + MS + n), NULL,
                &timers[n]));
        for (n = 0; n < config.max_timers; ++n)
            OK(asx_region_timer_cancel(rt, timers[n], &cancelled));
    }
    for (i = 1; i < config.max_regions; ++i) {
        OK(asx_region_open(rt, region, NULL, &region));
        if (finalizers < config.max_finalizers && ++finalizers)
            OK(asx_region_defer(rt, region, asx_poll_with(ends, NULL)));
    }
    while (finalizers < config.max_finalizers && ++finalizers)
        OK(asx_region_defer(rt, region, asx_poll_with(ends, NULL)));
    for (i = 0; i < config.max_obligations; ++i)
        OK(asx_obligation_reserve(rt, region, &obligation));
    for (i = 0; i < config.max_channels; ++i)
        OK(make_channel(rt, &region, 1, sizeof i, &channel));
    for (i = 0; i < min_of(config.max_tasks, config.max_ready); ++i) {
        task = spawn(rt, region, waits, NULL);
        if (cleanups < config.max_cleanups && ++cleanups)
            OK(asx_task_push_cleanup(rt, task, asx_poll_with(ends, NULL)));
        OK(asx_task_set_watchdog(rt, task, 1000 * MS, MS));
        ANSWERS(asx_task_stopping(rt, task), ASX_E_WOULD_BLOCK);
    }
    while (cleanups < config.max_cleanups && ++cleanups)
        OK(asx_task_push_cleanup(rt, task, asx_poll_with(ends, NULL)));
    for (i = 0; i < config.max_timers; ++i)
        OK(asx_region_timer_arm(rt, region, asx_after((i % 7) * 300 * MS + MS), &task, &timer));
    for (i = 0; i < config.max_borrows; ++i)
        OK(asx_borrow_begin(rt, 0, &token));
    ANSWERS(asx_region_timer_arm(rt, region, asx_after(MS), NULL, &timer), ASX_E_RESOURCE_EXHAUSTED);
    ANSWERS(asx_region_open(rt, region, NULL, &region), ASX_E_RESOURCE_EXHAUSTED);
    verify(rt);
    OK(asx_soft_stop(rt));
    /* Stronger and stronger: each time all chains of causes are made anew. */
    OK(asx_region_close(rt, root(rt), ASX_CANCEL_USER, NULL, ASX_NONE, NULL));
    OK(asx_region_close(rt, root(rt), ASX_CANCEL_TIMEOUT, NULL, ASX_NONE, NULL));
    OK(asx_region_close(rt, root(rt), ASX_CANCEL_SHUTDOWN, NULL, 500 * MS, NULL));
    progress.struct_size = (uint32_t)sizeof progress;
    do {
        OK(asx_step(rt, ++stops * MS, 1000, &progress));
    } while (!progress.idle || asx_quiescent(rt, NULL) != ASX_OK);
    verify(rt);
    EQUAL(stats_of(rt).pool_spills, 0);
    OK(asx_runtime_destroy(rt));
    EQUAL(asked, 0);
    failing = forever = 0;
}

/* Each limit just beyond a power of two, where tables that double would be largest; and every limit
 * as small as it can be. */
static void each_limit(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    config.max_tasks = config.max_ready = 1025;
    filled(&config);
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.max_regions = 257;
    filled(&config);
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.max_channels = config.max_obligations = 1025;
    filled(&config);
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.max_timers = 1025;
    filled(&config);
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.max_finalizers = 1025;
    filled(&config);
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.max_cleanups = config.max_borrows = 1025;
    filled(&config);
    config.max_tasks = config.max_regions = config.max_obligations = config.max_channels = 1;
    config.max_timers = config.max_finalizers = config.max_cleanups = config.max_borrows = 1;
    config.max_trace = 1;
    filled(&config);
}

static unsigned long watchdogs;

static void on_watchdog(void *hook, asx_runtime *rt, asx_task_id task, int32_t stage)
{
    (void)hook;
    (void)rt;
    (void)task;
    (void)stage;
    ++watchdogs;
}

enum { SOME = 64 };

/* Random calls, as many as are asked for: with more things than there may be, which come and go.
 * Whatever they answer, nothing is broken, and nothing was asked for in the middle of a call. */
static void churn(const asx_runtime_config *config, long calls, int releases, unsigned refuses)
{
    static uint64_t seed = 1;
    asx_region_id regions[SOME] = { { 0, 0 } };
    asx_task_id tasks[SOME] = { { 0, 0 } };
    asx_obligation_id obligations[SOME] = { { 0, 0 } };
    asx_channel_id channels[SOME] = { { 0, 0 } };
    asx_send_permit permits[SOME] = { { NULL, 0, 0 } };
    asx_timer_handle timers[SOME] = { { 0, 0 } };
    asx_witness_id witness;
    asx_runtime *rt = runtime_of(config);
    uint64_t value = 0, now = 0, refused = 0, done = 0;
    int32_t outcome;
    void *out;
    unsigned long asked_before = asked;
    long i;

    failing = refuses ? 1 : 0;
    odds = refuses;
    for (i = 0; i < calls; ++i) {
        asx_status got = ASX_OK;
        unsigned a, b, c;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        a = (unsigned)(seed >> 33) % SOME;
        b = (unsigned)(seed >> 40) % SOME;
        c = (unsigned)(seed >> 50) % 64;
        switch (c) {
        case 0: case 1: case 2:
            got = asx_region_open(rt, a % 2 ? regions[b] : root(rt), NULL, &regions[a]);
            break;
        case 3: case 4: case 5: case 6: case 7: case 8:
            got = asx_task_spawn(rt, a % 2 ? regions[b] : root(rt), asx_poll_with(waits, NULL), NULL,
                &tasks[a]);
            break;
        case 9: case 10:
            got = asx_region_defer(rt, regions[a], asx_poll_with(ends, NULL));
            break;
        case 11: case 12:
            got = asx_task_push_cleanup(rt, tasks[a], asx_poll_with(ends, NULL));
            break;
        case 13: case 14: case 15:
            got = asx_obligation_reserve(rt, regions[a], &obligations[b]);
            break;
        case 16: case 17:
            got = asx_obligation_commit(rt, obligations[b]);
            break;
        case 18: case 19:
            got = make_channel(rt, a % 3 ? &regions[a] : NULL, 1 + b % 8, sizeof value, &channels[b]);
            break;
        case 20: case 21: case 22:
            got = asx_channel_try_send(SENDER(rt, channels[b]), &value);
            break;
        case 23: case 24:
            got = asx_channel_recv(RECEIVER(rt, channels[b]), CX(rt, tasks[a]), &value);
            break;
        case 25: case 26: case 27:
            got = ((int)(b % 2) ? asx_channel_reserve_tracked : asx_channel_reserve)(SENDER(rt, channels[b]), CX(rt, tasks[a]), &permits[a]);
            break;
        case 28:
            got = asx_send_permit_send(&permits[a], &value);
            break;
        case 29:
            got = asx_send_permit_try_abort(&permits[a]);
            break;
        case 30: case 31: case 32:
            got = asx_region_timer_arm(rt, regions[a], asx_after((uint64_t)b * b * b * 300000), &tasks[b],
                &timers[b]);
            break;
        case 33:
            got = asx_region_timer_cancel(rt, timers[b], NULL);
            break;
        case 34:
            got = asx_region_timer_update(rt, timers[b], regions[a], asx_after(b * MS), NULL, &timers[b]);
            break;
        case 35: case 36:
            got = asx_task_sleep(rt, tasks[a], asx_after((uint64_t)b * MS), &timers[b]);
            break;
        case 37: case 38:
            got = asx_task_join(rt, tasks[a], tasks[b], &outcome);
            break;
        case 39:
            got = asx_region_wait(rt, regions[a], tasks[b], &outcome);
            break;
        case 40:
            got = asx_task_set_watchdog(rt, tasks[a], b * MS, (b % 4) * MS);
            break;
        case 41: case 42:
            got = asx_task_cancel(rt, tasks[a], ASX_CANCEL_USER, b % 2 ? message + b * 60 : NULL,
                NULL);
            break;
        case 43: case 44:
            got = asx_region_close(rt, regions[a], (int32_t)(b % 4), b % 3 ? NULL : message + b * 60,
                b % 2 ? ASX_NONE : b * MS, NULL);
            break;
        case 45:
            got = asx_task_witness(rt, tasks[a], &witness);
            if (got == ASX_OK)
                OK(asx_witness_release(rt, witness));
            break;
        case 46:
            got = asx_channel_sender_close(SENDER(rt, channels[b]));
            break;
        case 47:
            got = asx_channel_receiver_close(RECEIVER(rt, channels[b]));
            break;
        case 48:
            got = asx_channel_release(rt, channels[b]);
            break;
        case 49:
            got = asx_task_spawn_failed(rt, regions[a], -1, message + b * 60, &tasks[a]);
            break;
        case 50: case 51: case 52: case 53:
            got = releases ? asx_task_release(rt, tasks[a]) : ASX_OK;
            break;
        case 54: case 55:
            got = releases ? asx_region_release(rt, regions[a]) : ASX_OK;
            break;
        case 56:
            got = asx_region_end(rt, regions[a]);
            break;
        case 57:
            got = asx_task_wake(rt, tasks[a]);
            break;
        case 58:
            got = asx_channel_evict(SENDER(rt, channels[b]), &value, NULL, NULL);
            break;
        case 59:
            got = asx_region_alloc(rt, regions[a], 1 + (size_t)b * 60, (size_t)1 << b % 8, &out);
            if (got == ASX_OK)
                memset(out, 1, 1 + (size_t)b * 60);
            break;
        default:
            now += (uint64_t)b * MS / 4;
            OK(asx_step(rt, now, 1 + b, NULL));
        }
        EQUAL(got == ASX_E_INTERNAL, 0);
        refused += got == ASX_E_RESOURCE_EXHAUSTED;
        done += got == ASX_OK;
        if (i % 20011 == 0)
            verify(rt);
    }
    verify(rt);
    EQUAL(stats_of(rt).pool_spills, 0);
    EQUAL(refused > (uint64_t)calls / 1000 && done > (uint64_t)calls / 20, 1);
    if (config->flags & ASX_FLAG_STRICT)
        EQUAL(asked, asked_before);
    OK(asx_region_close(rt, root(rt), ASX_CANCEL_SHUTDOWN, NULL, ASX_NONE, NULL));
    for (i = 0; i < 1000; ++i)
        OK(asx_step(rt, now, ASX_NONE, NULL));
    /* But for what is in channels that no region has. */
    EQUAL(asx_quiescent(rt, NULL) == ASX_OK || asx_quiescent(rt, NULL) == ASX_E_CHANNEL_NOT_DRAINED,
        1);
    OK(asx_runtime_destroy(rt));
    failing = odds = 0;
    EQUAL(given, taken);
}

enum { DEEP = 20, WIDE = 24 };

/* Much of everything, in a deep tree, and all of it closed at once. Answers are not looked at: they
 * may be refusals. */
static void busy(asx_runtime *rt)
{
    asx_region_id regions[DEEP];
    asx_region_options fail_fast;
    asx_task_id task = { 0, 0 }, first = { 0, 0 };
    asx_channel_id channel = { 0, 0 };
    asx_send_permit permit;
    asx_obligation_id obligation;
    asx_timer_handle timer;
    uint64_t value = 0;
    int32_t outcome;
    void *out;
    int i;

    memset(&fail_fast, 0, sizeof fail_fast);
    fail_fast.struct_size = (uint32_t)sizeof fail_fast;
    fail_fast.policy = ASX_POLICY_FAIL_FAST;
    fail_fast.max_children = ASX_NONE;
    fail_fast.budget.deadline = ASX_NONE;
    fail_fast.budget.poll_quota = fail_fast.budget.cost_quota = ASX_NONE;
    (void)asx_region_root(rt, &regions[0]);
    for (i = 1; i < DEEP; ++i) {
        if (asx_region_open(rt, regions[i - 1], i % 2 ? &fail_fast : NULL, &regions[i]) != ASX_OK)
            regions[i] = regions[i - 1];
        (void)asx_obligation_reserve(rt, regions[i], &obligation);
        if (asx_region_alloc(rt, regions[i], 3000, 64, &out) == ASX_OK)
            memset(out, 1, 3000);
        (void)asx_region_defer(rt, regions[i], asx_poll_with(ends, NULL));
        (void)asx_region_timer_arm(rt, regions[i], asx_after((uint64_t)i * 700 * MS), NULL, &timer);
    }
    (void)make_channel(rt, &regions[1], 3, sizeof value, &channel);
    for (i = 0; i < WIDE; ++i) {
        if (asx_task_spawn(rt, regions[i % DEEP], asx_poll_with(waits, NULL), NULL, &task) != ASX_OK)
            continue;
        if (i == 0)
            first = task;
        (void)asx_task_push_cleanup(rt, task, asx_poll_with(ends, NULL));
        (void)asx_task_set_watchdog(rt, task, 5 * MS, MS);
        (void)asx_task_sleep(rt, task, asx_after((uint64_t)i * MS), &timer);
        (void)(i % 2 ? asx_channel_reserve_tracked : asx_channel_reserve)(SENDER(rt, channel), CX(rt, task), &permit);
        (void)asx_channel_try_send(SENDER(rt, channel), &value);
        (void)asx_task_join(rt, task, first, &outcome);
        (void)asx_task_stopping(rt, task);
    }
    (void)asx_step(rt, 3 * MS, 30, NULL);
    (void)asx_task_spawn_failed(rt, regions[DEEP / 2], -1, message, &task);
    (void)asx_region_close(rt, regions[1], ASX_CANCEL_USER, message, 50 * MS, NULL);
    (void)asx_shutdown(rt, MS, 20 * MS);
    (void)asx_run_until_idle(rt, 6 * MS, NULL);
    (void)asx_run_until_idle(rt, 60 * MS, NULL);
    OK(asx_region_close(rt, regions[0], ASX_CANCEL_SHUTDOWN, NULL, ASX_NONE, NULL));
    (void)asx_run_until_idle(rt, 1000 * MS, NULL);
    verify(rt);
    ANSWERS(asx_dump(rt, told, sizeof told, NULL),
        has(ASX_FEATURE_DUMP) ? ASX_OK : ASX_E_CAPABILITY_DENIED);
    OK(asx_quiescent(rt, NULL));
}

/* For every n: the n-th answer of the allocator is NULL, or all are from the n-th on. */
static void faulty(const asx_runtime_config *config)
{
    uint64_t undisturbed = 0;
    for (forever = 0; forever < 2; ++forever) {
        for (failing = (unsigned long)forever;; failing += sampled ? 1 + failing / 8 : 1) {
            asx_runtime *rt = NULL;
            asx_status status;
            asked = faults = given = taken = 0;
            status = asx_runtime_create(config, &rt);
            if (status != ASX_OK) {
                ANSWERS(status, ASX_E_RESOURCE_EXHAUSTED);
            } else {
                busy(rt);
                if (faults == 0) {
                    undisturbed = undisturbed ? undisturbed : digest(rt);
                    EQUAL(digest(rt) == undisturbed, 1);
                }
                OK(asx_runtime_destroy(rt));
            }
            EQUAL(given, taken);
            if (failing > 0 && faults == 0)
                break;
        }
        printf("memory: the n-th%s, n up to %lu\n", forever ? " and all after it" : "", failing);
    }
    failing = forever = 0;
}

int main(int argc, char **argv)
{
    asx_runtime_config config;
    sampled = argc > 1 && strcmp(argv[1], "sampled") == 0;
    OK(asx_set_allocator(gives, takes, NULL));
    memset(message, 'x', sizeof message - 1);
    limits(ASX_PROFILE_EMBEDDED);
    limits(ASX_PROFILE_AUTOMOTIVE);
    sizes();
    config = config_of(ASX_PROFILE_EMBEDDED);
    filled(&config);
    config.max_tasks = config.max_ready = config.max_timers = 700;
    filled(&config);
    config.max_regions = 300;
    config.max_obligations = config.max_channels = 200;
    filled(&config);
    config.max_finalizers = config.max_cleanups = config.max_borrows = 900;
    filled(&config);
    each_limit();
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.watchdog = on_watchdog;
    churn(&config, sampled ? 20000 : 1000000, 1, 0);
    /* Nothing is released: the pool is used up by what is over. */
    churn(&config, sampled ? 20000 : 100000, 0, 0);
    config = config_of(ASX_PROFILE_CORE);
    config.max_tasks = config.max_regions = config.max_timers = 1000;
    churn(&config, sampled ? 5000 : 100000, 1, 99);
    config = config_of(ASX_PROFILE_CORE);
    config.watchdog = on_watchdog;
    faulty(&config);
    /* A pool that may spill does, and is helped as the others are. */
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.flags &= ~(uint32_t)ASX_FLAG_STRICT;
    config.pool_bytes = 16 << 10;
    config.max_regions = 1000;
    config.max_steps = ASX_NONE;
    faulty(&config);
    EQUAL(watchdogs > 0, 1);
    puts("memory: ok");
    return 0;
}
