/* Without a journal everything happens as with one, and nothing is recorded. */
#include "check.h"

struct pair {
    asx_channel channel;
    uint64_t left, sum;
};

static int32_t sends(asx_runtime *rt, asx_task task, void *ctx)
{
    struct pair *pair = ctx;
    while (pair->left > 0) {
        asx_permit permit;
        asx_status status = asx_channel_reserve(rt, pair->channel, task, 0, &permit);
        if (status == ASX_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        OK(status);
        OK(asx_permit_send(rt, permit, &pair->left, sizeof pair->left));
        --pair->left;
    }
    OK(asx_channel_close_sender(rt, pair->channel));
    return ASX_POLL_READY;
}

static int32_t receives(asx_runtime *rt, asx_task task, void *ctx)
{
    struct pair *pair = ctx;
    uint64_t message;
    asx_status status;
    while ((status = asx_channel_recv(rt, pair->channel, task, &message, sizeof message)) == ASX_OK)
        pair->sum += message;
    if (status == ASX_WOULD_BLOCK)
        return ASX_POLL_PENDING;
    EQUAL(status, ASX_DISCONNECTED);
    return ASX_POLL_READY;
}

/* How many polls it takes. */
static uint64_t pipeline(int32_t profile, uint32_t flags, uint64_t max_trace, int32_t trace_full)
{
    asx_config config = config_of(profile);
    asx_runtime *rt;
    asx_journal_info journal;
    asx_event event;
    struct pair pair = { { 0, 0 }, 20, 0 };
    asx_task sender, receiver;
    uint64_t polls = 0, value = 7;
    size_t count = 7;
    char line[64];

    config.flags |= flags;
    config.max_trace = max_trace;
    config.trace_full = trace_full;
    rt = runtime_of(&config);
    OK(asx_channel_create(rt, NULL, 4, sizeof(uint64_t), &pair.channel));
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
        ANSWERS(asx_journal_digest(rt, &value), ASX_EMPTY);
        EQUAL(value, 7);
        OK(asx_journal_read(rt, 0, &event, 1, &count));
        EQUAL(count, 0);
        ANSWERS(asx_journal_line(rt, 0, line, sizeof line, NULL), ASX_EMPTY);
    } else {
        EQUAL(journal.recorded > 40, 1);
        OK(asx_journal_digest(rt, &value));
    }
    verify(rt);
    OK(asx_channel_close_receiver(rt, pair.channel));
    finish(rt);
    return polls;
}

int main(void)
{
    int32_t profile;
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
