/*
 * A burst of orders with deadlines: each order is a task that must be done within 50 us of its
 * arrival. Under the hft profile a call never does more than its bound. The governor suggests to
 * meet deadlines while the burst lasts. Orders that are too late are cancelled and counted. Orders
 * are allocated in their region, which frees them when it is Closed.
 */
#include <asx.h>
#include <stdio.h>

#define US UINT64_C(1000)

enum { ORDERS = 2000 };

struct order {
    uint32_t work;
    int filled;
};

static asx_task_id tasks[ORDERS];

static int32_t fill(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    struct order *order = (struct order *)ctx;
    if (asx_checkpoint(cx) != ASX_OK)
        return ASX_POLL_CANCELLED;
    if (order->work-- > 0) {
        asx_task_wake(rt, task);
        return ASX_POLL_PENDING;
    }
    order->filled = 1;
    return ASX_POLL_READY;
}

int main(void)
{
    asx_runtime_config config;
    asx_runtime *rt = NULL;
    asx_region_id root, burst;
    asx_stats stats;
    asx_progress progress;
    struct order *orders;
    void *memory = NULL;
    uint64_t now = 0;
    int i, filled = 0, late = 0;

    if (asx_runtime_config_init(&config, sizeof config, ASX_PROFILE_HFT) != ASX_OK
        || asx_runtime_create(&config, &rt) != ASX_OK)
        return 1;
    asx_region_root(rt, &root);
    if (asx_region_open(rt, root, NULL, &burst) != ASX_OK
        || asx_region_alloc(rt, burst, ORDERS * sizeof *orders, sizeof(int), &memory) != ASX_OK)
        return 1;
    orders = (struct order *)memory;
    asx_set_governor_mode(rt, ASX_SUGGEST_MEET_DEADLINES);
    for (i = 0; i < ORDERS; ++i) {
        asx_task_options options = ASX_TASK_OPTIONS_INIT;
        orders[i].work = (uint32_t)(i % 7);
        /* Every hundredth of the burst arrives a microsecond later. */
        options.budget.deadline = (uint64_t)(i / 20) * US + 50 * US;
        asx_task_spawn(rt, burst, asx_poll_with(fill, &orders[i]), &options, &tasks[i]);
    }
    /* A call every two microseconds, each bounded by the profile. */
    progress.struct_size = (uint32_t)sizeof progress;
    do {
        if (asx_step(rt, now, 64, &progress) != ASX_OK)
            return 1;
        now += 2 * US;
    } while (!progress.idle);

    for (i = 0; i < ORDERS; ++i) {
        int32_t outcome;
        if (asx_task_outcome(rt, tasks[i], &outcome) != ASX_OK)
            return 1;
        filled += outcome == ASX_OUTCOME_OK && orders[i].filled;
        late += outcome == ASX_OUTCOME_CANCELLED;
    }
    stats.struct_size = (uint32_t)sizeof stats;
    asx_get_stats(rt, &stats);
    printf("%d filled, %d too late, %llu polls, %llu calls left work behind\n", filled, late,
        (unsigned long long)stats.polls, (unsigned long long)stats.overruns);
    asx_shutdown(rt, 0, ASX_NONE);
    if (asx_run_until_idle(rt, now, NULL) != ASX_OK || filled + late != ORDERS)
        return 1;
    return asx_runtime_destroy(rt) == ASX_OK ? 0 : 1;
}
