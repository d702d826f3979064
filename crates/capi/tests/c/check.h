/* What the tests in C share: checks that say what differs, and a runtime that is ready to use. */
#ifndef CHECK_H
#define CHECK_H

#include <asx.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stops the test with the place and both values. */
#define EQUAL(got, wanted)                                                                         \
    do {                                                                                           \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                          \
        if (got_ != wanted_) {                                                                     \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_,       \
                wanted_);                                                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Stops the test unless a call answers this status. */
#define ANSWERS(call, wanted)                                                                      \
    do {                                                                                           \
        asx_status got_ = (call);                                                                  \
        if (got_ != (wanted)) {                                                                    \
            fprintf(stderr, "%s:%d: %s answers %d %s, not %s\n", __FILE__, __LINE__, #call,        \
                (int)got_, asx_status_name(got_), #wanted);                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OK(call) ANSWERS(call, ASX_OK)

#define MS UINT64_C(1000000)

/* The sides of a channel, and a context, where a test has only handles. */
#define SENDER(rt, channel) (&(asx_channel_sender){ (rt), (channel) })
#define RECEIVER(rt, channel) (&(asx_channel_receiver){ (rt), (channel) })
#define CX(rt, task) (&(asx_cx){ (rt), (task) })

/* A channel by its handle. */
static inline asx_status make_channel(asx_runtime *rt, const asx_region_id *region, size_t capacity,
    size_t element_size, asx_channel_id *out)
{
    asx_channel_sender sender;
    asx_channel_receiver receiver;
    asx_status status
        = asx_channel_create(rt, region, capacity, element_size, &sender, &receiver);
    if (status == ASX_OK)
        *out = sender.channel;
    return status;
}

static inline asx_runtime_config config_of(int32_t profile)
{
    asx_runtime_config config;
    OK(asx_runtime_config_init(&config, sizeof config, profile));
    return config;
}

static inline asx_runtime *runtime_of(const asx_runtime_config *config)
{
    asx_runtime *rt = NULL;
    OK(asx_runtime_create(config, &rt));
    return rt;
}

static inline asx_runtime *runtime(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    return runtime_of(&config);
}

static inline asx_region_id root(asx_runtime *rt)
{
    asx_region_id region;
    OK(asx_region_root(rt, &region));
    return region;
}

static inline asx_task_id spawn(asx_runtime *rt, asx_region_id region, asx_poll_fn poll, void *ctx)
{
    asx_task_id task;
    OK(asx_task_spawn(rt, region, asx_poll_with(poll, ctx), NULL, &task));
    return task;
}

/* Whether this build of the library has it. */
static inline int has(uint32_t feature)
{
    return (asx_features() & feature) != 0;
}

static inline uint64_t digest(asx_runtime *rt)
{
    uint64_t value = 0;
    ANSWERS(asx_journal_digest(rt, &value), has(ASX_FEATURE_JOURNAL) ? ASX_OK : ASX_E_EMPTY);
    return value;
}

/* Wants every invariant to hold, where that can be asked. */
static inline void verify(asx_runtime *rt)
{
    int can = has(ASX_FEATURE_DUMP);
    ANSWERS(asx_verify(rt, NULL, 0, NULL), can ? ASX_OK : ASX_E_CAPABILITY_DENIED);
}

static inline int32_t outcome(asx_runtime *rt, asx_task_id task)
{
    int32_t value = -1;
    OK(asx_task_outcome(rt, task, &value));
    return value;
}

/* Polls all that can run at this time; how often. */
static inline uint64_t run(asx_runtime *rt, uint64_t now)
{
    asx_progress progress;
    progress.struct_size = (uint32_t)sizeof progress;
    OK(asx_run_until_idle(rt, now, &progress));
    EQUAL(progress.idle, 1);
    return progress.polls;
}

/* Shuts down, and wants everything to be over. */
static inline void finish(asx_runtime *rt)
{
    uint64_t now;
    OK(asx_shutdown(rt, 0, 1000 * MS));
    OK(asx_now(rt, &now));
    run(rt, now);
    run(rt, now + 1000 * MS);
    OK(asx_quiescent(rt, NULL));
    OK(asx_runtime_destroy(rt));
}

#endif
