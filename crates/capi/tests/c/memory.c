/* Memory that is not to be had: what is refused has changed nothing, and the process goes on. */
#include "stage.h"

/* Not every n, but fewer and fewer of them. */
static int sampled;
static unsigned long asked, failing, faults, given, taken;
static int forever;
static char told[256];

static void *gives(void *hook, size_t size)
{
    (void)hook;
    ++asked;
    if (failing && (forever ? asked >= failing : asked == failing)) {
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

static int32_t ends(asx_runtime *rt, asx_task task, void *ctx)
{
    (void)rt;
    (void)task;
    if (ctx)
        ++*(int *)ctx;
    return ASX_POLL_READY;
}

static int32_t waits(asx_runtime *rt, asx_task task, void *ctx)
{
    (void)ctx;
    return asx_task_checkpoint(rt, task) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
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
    asx_config config = config_of(profile);
    asx_runtime *rt = runtime_of(&config);
    asx_task task;
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
    ANSWERS(asx_region_defer(rt, root(rt), asx_poll_with(ends, NULL)), ASX_RESOURCE_EXHAUSTED);
    ANSWERS(asx_task_push_cleanup(rt, task, asx_poll_with(ends, NULL)), ASX_RESOURCE_EXHAUSTED);
    ANSWERS(asx_borrow_begin(rt, 0, &token), ASX_RESOURCE_EXHAUSTED);
    EQUAL(digest(rt) == before, 1);
    OK(asx_borrow_end(rt, token));
    OK(asx_borrow_begin(rt, 0, &token));
    OK(asx_verify(rt, NULL, 0, NULL));
    OK(asx_region_close(rt, root(rt), ASX_CANCEL_USER, NULL, ASX_NONE, NULL));
    while (asx_run_until_idle(rt, 0, NULL) == ASX_RESOURCE_EXHAUSTED)
        ;
    EQUAL(finalized, config.max_finalizers);
    EQUAL(cleaned, config.max_cleanups);
    /* A region that is closed says so, though the limit is reached. */
    ANSWERS(asx_region_defer(rt, root(rt), asx_poll_with(ends, NULL)), ASX_REGION_NOT_OPEN);
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
    asx_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt = NULL;
    uint64_t needed;
    char number[32];

    OK(asx_config_pool_size(&config, &needed));
    config.log = logs;
    for (config.pool_bytes = 1; config.pool_bytes < needed; config.pool_bytes *= 2) {
        told[0] = 0;
        ANSWERS(asx_runtime_create(&config, &rt), ASX_RESOURCE_EXHAUSTED);
        EQUAL(rt == NULL, 1);
        sprintf(number, " %" PRIu64 " ", needed);
        EQUAL(strstr(told, number) != NULL, 1);
    }
    config.pool_bytes = needed - 1;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_RESOURCE_EXHAUSTED);
    config.pool_bytes = needed;
    rt = runtime_of(&config);
    round_of(rt, 0);
    OK(asx_runtime_destroy(rt));
    EQUAL(given, taken);
}

enum { DEEP = 20, WIDE = 24 };
static char message[4000];

/* Much of everything, in a deep tree, and all of it closed at once. Answers are not looked at: they
 * may be refusals. */
static void busy(asx_runtime *rt)
{
    asx_region regions[DEEP];
    asx_region_options fail_fast;
    asx_task task = { 0, 0 }, first = { 0, 0 };
    asx_channel channel = { 0, 0 };
    asx_permit permit;
    asx_obligation obligation;
    asx_timer timer;
    uint64_t value = 0;
    int32_t outcome;
    int i;

    memset(&fail_fast, 0, sizeof fail_fast);
    fail_fast.struct_size = (uint32_t)sizeof fail_fast;
    fail_fast.policy = ASX_POLICY_FAIL_FAST;
    fail_fast.max_children = ASX_NONE;
    fail_fast.budget.deadline = fail_fast.budget.polls = fail_fast.budget.cost = ASX_NONE;
    (void)asx_region_root(rt, &regions[0]);
    for (i = 1; i < DEEP; ++i) {
        if (asx_region_open(rt, regions[i - 1], i % 2 ? &fail_fast : NULL, &regions[i]) != ASX_OK)
            regions[i] = regions[i - 1];
        (void)asx_obligation_reserve(rt, regions[i], &obligation);
        (void)asx_region_defer(rt, regions[i], asx_poll_with(ends, NULL));
        (void)asx_timer_arm(rt, regions[i], asx_after((uint64_t)i * 700 * MS), NULL, &timer);
    }
    (void)asx_channel_create(rt, &regions[1], 3, sizeof value, &channel);
    for (i = 0; i < WIDE; ++i) {
        if (asx_task_spawn(rt, regions[i % DEEP], asx_poll_with(waits, NULL), NULL, &task) != ASX_OK)
            continue;
        if (i == 0)
            first = task;
        (void)asx_task_push_cleanup(rt, task, asx_poll_with(ends, NULL));
        (void)asx_task_set_watchdog(rt, task, 5 * MS);
        (void)asx_task_sleep(rt, task, asx_after((uint64_t)i * MS), &timer);
        (void)asx_channel_reserve(rt, channel, task, i % 2, &permit);
        (void)asx_channel_try_send(rt, channel, &value, sizeof value);
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
    OK(asx_verify(rt, NULL, 0, NULL));
    OK(asx_dump(rt, told, sizeof told, NULL));
    OK(asx_quiescent(rt, NULL));
}

/* For every n: the n-th answer of the allocator is NULL, or all are from the n-th on. */
static void faulty(const asx_config *config)
{
    uint64_t undisturbed = 0;
    for (forever = 0; forever < 2; ++forever) {
        for (failing = (unsigned long)forever;; failing += sampled ? 1 + failing / 8 : 1) {
            asx_runtime *rt = NULL;
            asx_status status;
            asked = faults = given = taken = 0;
            status = asx_runtime_create(config, &rt);
            if (status != ASX_OK) {
                ANSWERS(status, ASX_RESOURCE_EXHAUSTED);
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
    asx_config config;
    sampled = argc > 1 && strcmp(argv[1], "sampled") == 0;
    OK(asx_set_allocator(gives, takes, NULL));
    memset(message, 'x', sizeof message - 1);
    limits(ASX_PROFILE_EMBEDDED);
    limits(ASX_PROFILE_AUTOMOTIVE);
    sizes();
    config = config_of(ASX_PROFILE_CORE);
    faulty(&config);
    /* A pool that may spill does, and is helped as the others are. */
    config = config_of(ASX_PROFILE_EMBEDDED);
    config.flags &= ~(uint32_t)ASX_FLAG_STRICT;
    config.pool_bytes = 16 << 10;
    config.max_regions = 1000;
    config.max_steps = ASX_NONE;
    faulty(&config);
    puts("memory: ok");
    return 0;
}
