/* Without a journal everything happens as with one, and nothing is recorded. */
#include "check.h"

struct pair {
    asx_channel_id channel;
    uint64_t left, sum;
};

static int32_t sends(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    struct pair *pair = ctx;
    while (pair->left > 0) {
        asx_send_permit permit;
        asx_status status = asx_channel_reserve(SENDER(rt, pair->channel), cx, &permit);
        if (status == ASX_E_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        OK(status);
        OK(asx_send_permit_send(&permit, &pair->left));
        --pair->left;
    }
    OK(asx_channel_sender_close(SENDER(rt, pair->channel)));
    return ASX_POLL_READY;
}

static int32_t receives(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    struct pair *pair = ctx;
    uint64_t message;
    asx_status status;
    while ((status = asx_channel_recv(RECEIVER(rt, pair->channel), cx, &message)) == ASX_OK)
        pair->sum += message;
    if (status == ASX_E_WOULD_BLOCK)
        return ASX_POLL_PENDING;
    EQUAL(status, ASX_E_DISCONNECTED);
    return ASX_POLL_READY;
}

/* How many polls it takes. */
static uint64_t pipeline(int32_t profile, uint32_t flags, uint64_t max_trace, int32_t trace_full)
{
    asx_runtime_config config = config_of(profile);
    asx_runtime *rt;
    asx_journal_info journal;
    asx_event event;
    struct pair pair = { { 0, 0 }, 20, 0 };
    asx_task_id sender, receiver;
    uint64_t polls = 0, value = 7;
    size_t count = 7;
    char line[64];

    config.flags |= flags;
    config.max_trace = max_trace;
    config.trace_full = trace_full;
    rt = runtime_of(&config);
    OK(make_channel(rt, NULL, 4, sizeof(uint64_t), &pair.channel));
    sender = spawn(rt, root(rt), sends, &pair);
    receiver = spawn(rt, root(rt), receives, &pair);
    polls = run(rt, 0);
    EQUAL(pair.sum, 20 * 21 / 2);
    EQUAL(outcome(rt, sender), ASX_OUTCOME_OK);
    EQUAL(outcome(rt, receiver), ASX_OUTCOME_OK);
    journal.struct_size = (uint32_t)sizeof journal;
    OK(asx_journal_get_info(rt, &journal));
    if (flags & ASX_FLAG_NO_JOURNAL || !has(ASX_FEATURE_JOURNAL)) {
        EQUAL(journal.recorded, 0);
        EQUAL(journal.lost, 0);
        EQUAL(journal.retained, 0);
        ANSWERS(asx_journal_digest(rt, &value), ASX_E_EMPTY);
        EQUAL(value, 7);
        OK(asx_journal_read(rt, 0, &event, 1, &count));
        EQUAL(count, 0);
        ANSWERS(asx_journal_line(rt, 0, line, sizeof line, NULL), ASX_E_EMPTY);
    } else {
        EQUAL(journal.recorded > 40, 1);
        OK(asx_journal_digest(rt, &value));
    }
    verify(rt);
    OK(asx_channel_receiver_close(RECEIVER(rt, pair.channel)));
    finish(rt);
    return polls;
}

/* Bytes of the largest element here. */
#define MOST 24

/* Two runtimes, one of them without a journal, and a channel in each. */
struct twins {
    asx_runtime *rt[2];
    asx_channel_id channel[2];
    size_t size;
};

static uint32_t state = 1;

static uint32_t any(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 16) % below;
}

/* A call of one of them, as the dice say: its status, and what it has written. */
static asx_status call(struct twins *twins, int one, uint32_t which, uint8_t fill, uint8_t *to)
{
    asx_runtime *rt = twins->rt[one];
    asx_channel_id channel = twins->channel[one];
    uint8_t from[MOST];
    asx_channel_info info;
    asx_send_permit permit;
    asx_status status;

    memset(from, fill, sizeof from);
    info.struct_size = (uint32_t)sizeof info;
    switch (which) {
    case 0:
        return asx_channel_evict(SENDER(rt, channel), from, to, NULL);
    case 1:
        status = asx_channel_try_reserve(SENDER(rt, channel), NULL, 0, &permit);
        return status == ASX_OK ? asx_send_permit_send(&permit, from) : status;
    case 2:
        return asx_channel_try_send(SENDER(rt, channel), from);
    case 3:
        return asx_channel_try_recv(RECEIVER(rt, channel), to);
    case 4:
        return asx_channel_try_send(SENDER(rt, channel), NULL);
    case 5:
        ++channel.generation;
        return asx_channel_try_send(SENDER(rt, channel), from);
    case 6:
        ++channel.generation;
        return asx_channel_try_recv(RECEIVER(rt, channel), to);
    case 7:
        OK(asx_channel_get_info(rt, channel, &info));
        return (asx_status)info.len;
    case 8: case 9: case 10: case 11: case 12:
        return asx_channel_try_recv(RECEIVER(rt, channel), to);
    default:
        return asx_channel_try_send(SENDER(rt, channel), from);
    }
}

static int32_t stays(asx_cx *cx, void *ctx)
{
    (void)cx, (void)ctx;
    return ASX_POLL_PENDING;
}

/* What is done in a shorter way without a journal is the same. */
static void same_answers(int32_t profile, size_t size, int in_region)
{
    struct twins twins;
    asx_region_id regions[2];
    uint8_t got[2][MOST];
    int one, step;

    twins.size = size;
    for (one = 0; one < 2; ++one) {
        asx_runtime_config config = config_of(profile);
        config.flags |= one ? ASX_FLAG_NO_JOURNAL : 0;
        twins.rt[one] = runtime_of(&config);
        OK(asx_region_open(twins.rt[one], root(twins.rt[one]), NULL, &regions[one]));
        OK(asx_region_defer(twins.rt[one], regions[one], asx_poll_with(stays, NULL)));
        OK(make_channel(
            twins.rt[one], in_region ? &regions[one] : NULL, 5, size, &twins.channel[one]));
    }
    for (step = 0; step < 20000; ++step) {
        uint32_t which = any(19);
        uint8_t fill = (uint8_t)any(256);
        asx_status told, quiet;
        memset(got, 0, sizeof got);
        told = call(&twins, 0, which, fill, got[0]);
        quiet = call(&twins, 1, which, fill, got[1]);
        EQUAL(quiet, told);
        EQUAL(memcmp(got[0], got[1], MOST), 0);
        /* A region that finalizes lets nobody use its channels, though they are there. */
        for (one = 0; one < 2 && step == 19000; ++one) {
            OK(in_region ? asx_region_end(twins.rt[one], regions[one])
                         : asx_channel_sender_close(SENDER(twins.rt[one], twins.channel[one])));
            run(twins.rt[one], 0);
        }
    }
    for (one = 0; one < 2; ++one) {
        verify(twins.rt[one]);
        if (!in_region)
            OK(asx_channel_receiver_close(RECEIVER(twins.rt[one], twins.channel[one])));
        finish(twins.rt[one]);
    }
}

int main(void)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 16, MOST };
    size_t at;
    int32_t profile;
    for (profile = ASX_PROFILE_CORE; profile <= ASX_PROFILE_AUTOMOTIVE; ++profile)
        for (at = 0; at < sizeof sizes / sizeof *sizes; ++at) {
            same_answers(profile, sizes[at], 0);
            same_answers(profile, sizes[at], 1);
        }
    for (profile = ASX_PROFILE_CORE; profile <= ASX_PROFILE_AUTOMOTIVE; ++profile) {
        uint64_t told = pipeline(profile, 0, 256, ASX_TRACE_OVERWRITE);
        uint32_t off = ASX_FLAG_NO_JOURNAL;
        EQUAL(pipeline(profile, off, 256, ASX_TRACE_OVERWRITE), told);
        /* A full journal refuses new work; one that is not there is never full. */
        EQUAL(pipeline(profile, off, 0, ASX_TRACE_REFUSE), told);
    }
    puts("quiet: ok");
    return 0;
}
