/* A scenario that uses what a runtime has: the same in every profile, on every thread. */
#ifndef STAGE_H
#define STAGE_H

#include "check.h"

/* A producer, a consumer and a sleeper: channels, timers, cancels and regions. */
struct stage {
    asx_channel channel;
    uint32_t sent, received;
    asx_timer timer;
    int sleeping;
};

static inline int32_t produce(asx_runtime *rt, asx_task task, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    while (stage->sent < 20) {
        asx_permit permit;
        asx_status status = asx_channel_reserve(rt, stage->channel, task, 0, &permit);
        if (status == ASX_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        OK(status);
        OK(asx_permit_send(rt, permit, &stage->sent, sizeof stage->sent));
        ++stage->sent;
    }
    OK(asx_channel_close_sender(rt, stage->channel));
    return ASX_POLL_READY;
}

static inline int32_t consume(asx_runtime *rt, asx_task task, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    for (;;) {
        uint32_t number;
        asx_status status = asx_channel_recv(rt, stage->channel, task, &number, sizeof number);
        if (status == ASX_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status == ASX_DISCONNECTED)
            return ASX_POLL_READY;
        OK(status);
        EQUAL(number, stage->received);
        ++stage->received;
    }
}

static inline int32_t sleep_and_kick(asx_runtime *rt, asx_task task, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    if (!stage->sleeping) {
        OK(asx_task_sleep(rt, task, asx_after(2 * MS), &stage->timer));
        stage->sleeping = 1;
    }
    if (asx_task_sleep_over(rt, task, stage->timer) == ASX_WOULD_BLOCK)
        return ASX_POLL_PENDING;
    OK(asx_task_kick_watchdog(rt, task));
    return ASX_POLL_READY;
}

static inline void drain(asx_runtime *rt, uint64_t now)
{
    asx_progress progress;
    progress.struct_size = (uint32_t)sizeof progress;
    do {
        OK(asx_step(rt, now, 1000, &progress));
    } while (!progress.idle);
}

/* One round of the scenario, in a region of its own. */
static inline void round_of(asx_runtime *rt, uint64_t now)
{
    struct stage stage;
    asx_region region;
    asx_task tasks[3];
    int i;

    memset(&stage, 0, sizeof stage);
    OK(asx_region_open(rt, root(rt), NULL, &region));
    OK(asx_channel_create(rt, &region, 3, sizeof(uint32_t), &stage.channel));
    tasks[0] = spawn(rt, region, produce, &stage);
    tasks[1] = spawn(rt, region, consume, &stage);
    tasks[2] = spawn(rt, region, sleep_and_kick, &stage);
    OK(asx_region_end(rt, region));
    drain(rt, now);
    drain(rt, now + 2 * MS);
    EQUAL(stage.received, 20);
    for (i = 0; i < 3; ++i)
        EQUAL(outcome(rt, tasks[i]), ASX_OUTCOME_OK);
    OK(asx_region_release(rt, region));
}

#endif
