/*
 * A bounded pipeline: parse -> square -> print, two channels of two places each. A fast stage waits
 * for a slow one (backpressure); the end of the input travels down; a shutdown in the middle loses
 * nothing that was committed.
 */
#include <asx.h>
#include <stdio.h>

struct stage {
    asx_channel in, out;
    int64_t next, last;
    int64_t held;
    int holds;
    uint64_t waits;
};

static int32_t ended(asx_status status)
{
    return status == ASX_DISCONNECTED ? ASX_POLL_READY : ASX_POLL_CANCELLED;
}

/* Hands the held value on; 0 when done, else what the poll is to answer, plus 1. */
static int32_t hand_on(asx_runtime *rt, asx_task task, struct stage *stage)
{
    asx_permit permit;
    asx_status status = asx_channel_reserve(rt, stage->out, task, 0, &permit);
    if (status == ASX_WOULD_BLOCK) {
        ++stage->waits;
        return ASX_POLL_PENDING + 1;
    }
    if (status != ASX_OK)
        return ended(status) + 1;
    asx_permit_send(rt, permit, &stage->held, sizeof stage->held);
    stage->holds = 0;
    return 0;
}

static int32_t parse(asx_runtime *rt, asx_task task, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    while (stage->holds || stage->next <= stage->last) {
        int32_t answer;
        if (!stage->holds) {
            stage->held = stage->next++;
            stage->holds = 1;
        }
        answer = hand_on(rt, task, stage);
        if (answer)
            return answer - 1;
    }
    asx_channel_close_sender(rt, stage->out);
    return ASX_POLL_READY;
}

static int32_t square(asx_runtime *rt, asx_task task, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    for (;;) {
        int32_t answer;
        if (!stage->holds) {
            asx_status status
                = asx_channel_recv(rt, stage->in, task, &stage->held, sizeof stage->held);
            if (status == ASX_WOULD_BLOCK)
                return ASX_POLL_PENDING;
            if (status != ASX_OK) {
                asx_channel_close_sender(rt, stage->out);
                return ended(status);
            }
            stage->held *= stage->held;
            stage->holds = 1;
        }
        answer = hand_on(rt, task, stage);
        if (answer)
            return answer - 1;
    }
}

static int32_t print(asx_runtime *rt, asx_task task, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    int64_t value;
    asx_status status = asx_channel_recv(rt, stage->in, task, &value, sizeof value);
    if (status == ASX_WOULD_BLOCK)
        return ASX_POLL_PENDING;
    if (status != ASX_OK)
        return ended(status);
    stage->next += value;
    /* One at a time: the slow stage. */
    asx_task_wake(rt, task);
    return ASX_POLL_PENDING;
}

static int run(int64_t last, uint64_t steps)
{
    struct stage parser = { { 0, 0 }, { 0, 0 }, 1, 0, 0, 0, 0 };
    struct stage squarer = { { 0, 0 }, { 0, 0 }, 0, 0, 0, 0, 0 };
    struct stage printer = { { 0, 0 }, { 0, 0 }, 0, 0, 0, 0, 0 };
    asx_config config;
    asx_runtime *rt = NULL;
    asx_region root;
    asx_task task;

    parser.last = last;
    if (asx_config_init(&config, sizeof config, ASX_PROFILE_CORE) != ASX_OK
        || asx_runtime_create(&config, &rt) != ASX_OK)
        return 1;
    asx_region_root(rt, &root);
    asx_channel_create(rt, &root, 2, sizeof(int64_t), &parser.out);
    asx_channel_create(rt, &root, 2, sizeof(int64_t), &squarer.out);
    squarer.in = parser.out;
    printer.in = squarer.out;
    asx_task_spawn(rt, root, asx_poll_with(parse, &parser), NULL, &task);
    asx_task_spawn(rt, root, asx_poll_with(square, &squarer), NULL, &task);
    asx_task_spawn(rt, root, asx_poll_with(print, &printer), NULL, &task);
    asx_step(rt, 0, steps, NULL);
    asx_shutdown(rt, 0, UINT64_C(1000000000));
    if (asx_run_until_idle(rt, 0, NULL) != ASX_OK || asx_quiescent(rt, NULL) != ASX_OK)
        return 1;
    printf("%s: sum %lld, the parser waited %llu times\n",
        steps == UINT64_MAX ? "whole" : "stopped", (long long)printer.next,
        (unsigned long long)parser.waits);
    return asx_runtime_destroy(rt) == ASX_OK ? 0 : 1;
}

int main(void)
{
    return run(100, UINT64_MAX) || run(100, 40);
}
