/*
 * A bounded pipeline: parse -> square -> print, two channels of two places each. A fast stage waits
 * for a slow one (backpressure); the end of the input travels down; a shutdown in the middle loses
 * nothing that was committed.
 */
#include <asx.h>
#include <stdio.h>
#include <string.h>

struct stage {
    asx_channel_receiver in;
    asx_channel_sender out;
    int64_t next, last;
    int64_t held;
    int holds;
    uint64_t waits;
};

static int32_t ended(asx_status status)
{
    return status == ASX_E_DISCONNECTED ? ASX_POLL_READY : ASX_POLL_CANCELLED;
}

/* Sends the held value; 0 when done, else the result of the poll plus 1. */
static int32_t hand_on(asx_cx *cx, struct stage *stage)
{
    asx_send_permit permit;
    asx_status status = asx_channel_reserve(&stage->out, cx, &permit);
    if (status == ASX_E_WOULD_BLOCK) {
        ++stage->waits;
        return ASX_POLL_PENDING + 1;
    }
    if (status != ASX_OK)
        return ended(status) + 1;
    asx_send_permit_send(&permit, &stage->held);
    stage->holds = 0;
    return 0;
}

static int32_t parse(asx_cx *cx, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    while (stage->holds || stage->next <= stage->last) {
        int32_t answer;
        if (!stage->holds) {
            stage->held = stage->next++;
            stage->holds = 1;
        }
        answer = hand_on(cx, stage);
        if (answer)
            return answer - 1;
    }
    asx_channel_sender_close(&stage->out);
    return ASX_POLL_READY;
}

static int32_t square(asx_cx *cx, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    for (;;) {
        int32_t answer;
        if (!stage->holds) {
            asx_status status = asx_channel_recv(&stage->in, cx, &stage->held);
            if (status == ASX_E_WOULD_BLOCK)
                return ASX_POLL_PENDING;
            if (status != ASX_OK) {
                asx_channel_sender_close(&stage->out);
                return ended(status);
            }
            stage->held *= stage->held;
            stage->holds = 1;
        }
        answer = hand_on(cx, stage);
        if (answer)
            return answer - 1;
    }
}

static int32_t print(asx_cx *cx, void *ctx)
{
    struct stage *stage = (struct stage *)ctx;
    int64_t value;
    asx_status status = asx_channel_recv(&stage->in, cx, &value);
    if (status == ASX_E_WOULD_BLOCK)
        return ASX_POLL_PENDING;
    if (status != ASX_OK)
        return ended(status);
    stage->next += value;
    /* One at a time: the slow stage. */
    asx_task_wake(cx->rt, cx->task);
    return ASX_POLL_PENDING;
}

static int run(int64_t last, uint64_t steps)
{
    struct stage parser, squarer, printer;
    asx_runtime_config config;
    asx_runtime *rt = NULL;
    asx_region_id root;
    asx_task_id task;

    memset(&parser, 0, sizeof parser);
    squarer = printer = parser;
    parser.next = 1;
    parser.last = last;
    if (asx_runtime_config_init(&config, sizeof config, ASX_PROFILE_CORE) != ASX_OK
        || asx_runtime_create(&config, &rt) != ASX_OK)
        return 1;
    asx_region_root(rt, &root);
    asx_channel_create(rt, &root, 2, sizeof(int64_t), &parser.out, &squarer.in);
    asx_channel_create(rt, &root, 2, sizeof(int64_t), &squarer.out, &printer.in);
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
