/* A scenario that uses what a runtime has: the same in every profile, on every thread. */
#ifndef STAGE_H
#define STAGE_H

#include "check.h"

/* A producer, a consumer and a sleeper: channels, timers, cancels and regions. */
struct stage {
    asx_channel_id channel;
    uint32_t sent, received;
    asx_timer_handle timer;
    int sleeping;
};

static inline int32_t produce(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    struct stage *stage = (struct stage *)ctx;
    while (stage->sent < 20) {
        asx_send_permit permit;
        asx_status status = asx_channel_reserve(SENDER(rt, stage->channel), cx, &permit);
        if (status == ASX_E_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        OK(status);
        OK(asx_send_permit_send(&permit, &stage->sent));
        ++stage->sent;
    }
    OK(asx_channel_sender_close(SENDER(rt, stage->channel)));
    return ASX_POLL_READY;
}

static inline int32_t consume(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    struct stage *stage = (struct stage *)ctx;
    for (;;) {
        uint32_t number;
        asx_status status = asx_channel_recv(RECEIVER(rt, stage->channel), cx, &number);
        if (status == ASX_E_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status == ASX_E_DISCONNECTED)
            return ASX_POLL_READY;
        OK(status);
        EQUAL(number, stage->received);
        ++stage->received;
    }
}

static inline int32_t sleep_and_kick(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    struct stage *stage = (struct stage *)ctx;
    if (!stage->sleeping) {
        OK(asx_task_sleep(rt, task, asx_after(2 * MS), &stage->timer));
        stage->sleeping = 1;
    }
    if (asx_task_sleep_over(rt, task, stage->timer) == ASX_E_WOULD_BLOCK)
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
    asx_region_id region;
    asx_task_id tasks[3];
    int i;

    memset(&stage, 0, sizeof stage);
    OK(asx_region_open(rt, root(rt), NULL, &region));
    OK(make_channel(rt, &region, 3, sizeof(uint32_t), &stage.channel));
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
