/* Hooks a runtime asks, and calls that nothing else here makes. */
#include "check.h"

/* What the hooks answer, and how often they were asked. */
struct asked {
    uint64_t entropy, thread;
    int entropies, threads;
};

static uint64_t on_entropy(void *hook)
{
    struct asked *asked = (struct asked *)hook;
    ++asked->entropies;
    return asked->entropy;
}

static uint64_t on_thread(void *hook)
{
    struct asked *asked = (struct asked *)hook;
    ++asked->threads;
    return asked->thread;
}

static uint64_t first_number(asx_runtime *rt)
{
    uint64_t number = 0, before = digest(rt);
    OK(asx_random(rt, &number));
    /* The program's numbers are its own business. */
    EQUAL(digest(rt), before);
    OK(asx_runtime_destroy(rt));
    return number;
}

/* A seed from the hook is a seed like any other, and is drawn once. */
static void entropy(void)
{
    struct asked asked = { 42, 0, 0, 0 };
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt = NULL;
    uint64_t of_hook, of_seed, of_other;

    config.flags |= ASX_FLAG_SEED_FROM_ENTROPY;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    config.hook = &asked;
    config.entropy = on_entropy;
    of_hook = first_number(runtime_of(&config));
    EQUAL(asked.entropies, 1);
    config = config_of(ASX_PROFILE_CORE);
    config.entropy = on_entropy;
    config.hook = &asked;
    config.seed = 42;
    of_seed = first_number(runtime_of(&config));
    config.seed = 43;
    of_other = first_number(runtime_of(&config));
    EQUAL(asked.entropies, 1);
    EQUAL(of_hook == of_seed, 1);
    EQUAL(of_hook == of_other, 0);
}

static int32_t idle(asx_cx *cx, void *ctx)
{
    ++*(int *)ctx;
    return asx_checkpoint(cx) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
}

/* Who calls is whom the hook says. */
static void threads(void)
{
    struct asked asked = { 0, 7, 0, 0 };
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt;
    asx_task_id task;
    asx_stats stats;
    int polls = 0;

    config.hook = &asked;
    config.thread = on_thread;
    config.flags |= ASX_FLAG_GHOSTS;
    rt = runtime_of(&config);
    task = spawn(rt, root(rt), idle, &polls);
    asked.thread = 8;
    ANSWERS(asx_task_wake(rt, task), ASX_E_AFFINITY_VIOLATION);
    ANSWERS(asx_step(rt, 0, 1, NULL), ASX_E_AFFINITY_VIOLATION);
    ANSWERS(asx_runtime_destroy(rt), ASX_E_AFFINITY_VIOLATION);
    asked.threads = 0;
    OK(asx_external_wake(rt, task));
    EQUAL(asked.threads, 0);
    asked.thread = 7;
    EQUAL(run(rt, 0), 1);
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.ghosts[ASX_GHOST_AFFINITY], 3);
    finish(rt);
}

static int32_t acknowledges(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    asx_status status = asx_task_acknowledge(rt, task);
    (void)ctx;
    if (status == ASX_E_INVALID_TRANSITION)
        return ASX_POLL_PENDING;
    OK(status);
    OK(asx_task_acknowledge(rt, task));
    return ASX_POLL_CANCELLED;
}

static void acknowledging(void)
{
    asx_runtime *rt = runtime();
    asx_task_id task = spawn(rt, root(rt), acknowledges, NULL);
    run(rt, 0);
    OK(asx_task_cancel(rt, task, ASX_CANCEL_USER, NULL, NULL));
    run(rt, 0);
    EQUAL(outcome(rt, task), ASX_OUTCOME_CANCELLED);
    ANSWERS(asx_task_acknowledge(rt, task), ASX_E_INVALID_TRANSITION);
    finish(rt);
}

struct receiver {
    asx_channel_id channel;
    int polls;
};

static int32_t receives(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    struct receiver *receiver = (struct receiver *)ctx;
    char byte;
    ++receiver->polls;
    switch (asx_channel_recv(RECEIVER(rt, receiver->channel), cx, &byte)) {
    case ASX_OK:
        return ASX_POLL_READY;
    case ASX_E_WOULD_BLOCK:
        return ASX_POLL_PENDING;
    default:
        return ASX_POLL_CANCELLED;
    }
}

/* Who has given up its wait is not woken by what it waited for. */
static void abandoning(void)
{
    asx_runtime *rt = runtime();
    struct receiver receiver = { { 0, 0 }, 0 };
    int32_t waited = -1;
    asx_task_id task;

    OK(make_channel(rt, NULL, 2, 1, &receiver.channel));
    task = spawn(rt, root(rt), receives, &receiver);
    OK(asx_channel_abandon(rt, receiver.channel, task, &waited));
    EQUAL(waited, 0);
    run(rt, 0);
    OK(asx_channel_abandon(rt, receiver.channel, task, &waited));
    EQUAL(waited, 1);
    OK(asx_channel_try_send(SENDER(rt, receiver.channel), "x"));
    EQUAL(run(rt, 0), 0);
    OK(asx_task_wake(rt, task));
    EQUAL(run(rt, 0), 1);
    EQUAL(outcome(rt, task), ASX_OUTCOME_OK);
    EQUAL(receiver.polls, 2);
    OK(asx_channel_sender_close(SENDER(rt, receiver.channel)));
    OK(asx_channel_receiver_close(RECEIVER(rt, receiver.channel)));
    finish(rt);
}

int main(void)
{
    entropy();
    threads();
    acknowledging();
    abandoning();
    puts("hooks: ok");
    return 0;
}
