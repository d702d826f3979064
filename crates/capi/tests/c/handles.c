/* What handles say by themselves, witnesses of a cancel, and runtimes that change hands. */
#include "check.h"
#include <pthread.h>

static asx_task_id seen_task;

static int32_t looks_at_itself(asx_cx *cx, void *ctx)
{
    asx_task_id task = cx->task;
    seen_task = task;
    return *(int32_t *)ctx;
}

static asx_task_id task_now(asx_runtime *rt, asx_task_id task)
{
    asx_task_id now;
    OK(asx_task_snapshot(rt, task, &now));
    EQUAL(asx_same_task(task, now), 1);
    return now;
}

static asx_region_id region_now(asx_runtime *rt, asx_region_id region)
{
    asx_region_id now;
    OK(asx_region_snapshot(rt, region, &now));
    EQUAL(asx_same_region(region, now), 1);
    return now;
}

#define TASK_STATE(task, state) EQUAL(asx_handle_mask((task).bits), ASX_MASK(ASX_TASK_##state))
#define REGION_STATE(region, state)                                                                \
    EQUAL(asx_handle_mask((region).bits), ASX_MASK(ASX_REGION_##state))

/* A handle carries the state in which it was made; a later look gives a new one. */
static void masks(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    asx_task_id task;
    asx_task_info info;
    int32_t answer = ASX_POLL_PENDING;

    OK(asx_region_open(rt, root(rt), NULL, &region));
    EQUAL(asx_handle_tag(region.bits), ASX_TAG_REGION);
    REGION_STATE(region, OPEN);
    EQUAL(asx_handle_allows(region.bits, ASX_MASK(ASX_REGION_OPEN)), 1);
    EQUAL(asx_handle_allows(region.bits, ASX_MASK(ASX_REGION_CLOSED)), 0);
    task = spawn(rt, region, looks_at_itself, &answer);
    EQUAL(asx_handle_tag(task.bits), ASX_TAG_TASK);
    TASK_STATE(task, CREATED);
    run(rt, 0);
    TASK_STATE(seen_task, RUNNING);
    TASK_STATE(task_now(rt, task), RUNNING);
    OK(asx_region_close(rt, region, ASX_CANCEL_USER, NULL, ASX_NONE, NULL));
    REGION_STATE(region_now(rt, region), DRAINING);
    TASK_STATE(task_now(rt, task), CANCEL_REQUESTED);
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_task_get_info(rt, task, &info));
    REGION_STATE(info.region, DRAINING);
    OK(asx_checkpoint(CX(rt, task)) == ASX_E_CANCELLED ? ASX_OK : ASX_E_INTERNAL);
    TASK_STATE(task_now(rt, task), CANCELLING);
    answer = ASX_POLL_CANCELLED;
    OK(asx_task_wake(rt, task));
    run(rt, 0);
    TASK_STATE(task_now(rt, task), COMPLETED);
    REGION_STATE(region_now(rt, region), CLOSED);
    /* Every one of them still names the task. */
    OK(asx_task_get_info(rt, task, &info));
    OK(asx_task_get_info(rt, seen_task, &info));
    OK(asx_task_get_info(rt, task_now(rt, task), &info));
    finish(rt);
}

static asx_task_id task_claims(asx_task_id task, uint64_t mask)
{
    task.bits = (task.bits & ~(UINT64_C(0xFFFF) << 32)) | (mask << 32);
    return task;
}

static asx_region_id region_claims(asx_region_id region, uint64_t mask)
{
    region.bits = (region.bits & ~(UINT64_C(0xFFFF) << 32)) | (mask << 32);
    return region;
}

/* A mask that is no state, or one that the thing cannot have had, is refused. */
static void forged_masks(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region;
    asx_task_id task, other;
    asx_obligation_id obligation;
    asx_channel_id channel;
    asx_send_permit permit;
    asx_timer_handle timer;
    int32_t pending = ASX_POLL_PENDING;
    uint64_t digested, element = 0;
    uint64_t malformed[5] = { 0, 3, 64, 0x8000, 0xFFFF };
    int i;

    OK(asx_region_open(rt, root(rt), NULL, &region));
    task = spawn(rt, region, looks_at_itself, &pending);
    OK(asx_obligation_reserve(rt, region, &obligation));
    OK(make_channel(rt, NULL, 1, sizeof element, &channel));
    OK(asx_channel_try_reserve(SENDER(rt, channel), NULL, 0, &permit));
    digested = digest(rt);
    for (i = 0; i < 5; ++i) {
        ANSWERS(asx_task_wake(rt, task_claims(task, malformed[i])), ASX_E_INVALID_ARGUMENT);
        ANSWERS(asx_external_wake(rt, task_claims(task, malformed[i])), ASX_E_INVALID_ARGUMENT);
        ANSWERS(asx_region_end(rt, region_claims(region, malformed[i])), ASX_E_INVALID_ARGUMENT);
    }
    for (i = 1; i < 6; ++i)
        ANSWERS(asx_task_wake(rt, task_claims(task, ASX_MASK(i))), ASX_E_INVALID_ARGUMENT);
    for (i = 1; i < 5; ++i) {
        asx_region_id forged = region_claims(region, ASX_MASK(i));
        ANSWERS(asx_region_end(rt, forged), ASX_E_INVALID_ARGUMENT);
        ANSWERS(asx_task_spawn(rt, forged, asx_poll_with(looks_at_itself, &pending), NULL, &other),
            ASX_E_INVALID_ARGUMENT);
        ANSWERS(make_channel(rt, &forged, 1, 8, &channel), ASX_E_INVALID_ARGUMENT);
    }
    other = task_claims(task, ASX_MASK(ASX_TASK_COMPLETED));
    ANSWERS(asx_region_timer_arm(rt, region, asx_after(1), &other, &timer), ASX_E_INVALID_ARGUMENT);
    obligation.bits ^= UINT64_C(3) << 32;
    ANSWERS(asx_obligation_commit(rt, obligation), ASX_E_INVALID_ARGUMENT);
    obligation.bits ^= UINT64_C(3) << 32;
    channel.bits ^= UINT64_C(3) << 32;
    ANSWERS(asx_channel_try_send(SENDER(rt, channel), &element), ASX_E_INVALID_ARGUMENT);
    permit.bits ^= UINT64_C(1) << 32;
    ANSWERS(asx_send_permit_try_abort(&permit), ASX_E_INVALID_ARGUMENT);
    permit.bits ^= UINT64_C(1) << 32;
    EQUAL(digest(rt), digested);
    run(rt, 0);
    /* It runs by now, and was never cancelled. */
    OK(asx_task_wake(rt, task_claims(task, ASX_MASK(ASX_TASK_RUNNING))));
    ANSWERS(asx_task_wake(rt, task_claims(task, ASX_MASK(ASX_TASK_CANCELLING))),
        ASX_E_INVALID_ARGUMENT);
    OK(asx_obligation_commit(rt, obligation));
    OK(asx_send_permit_try_abort(&permit));
    finish(rt);
}

static asx_witness_info about(asx_runtime *rt, asx_witness_id witness)
{
    asx_witness_info info;
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_witness_get_info(rt, witness, &info));
    return info;
}

/* Witnesses are taken as a cancel goes on, and each may follow those before it only. */
static void witnesses(int32_t profile)
{
    asx_runtime_config config = config_of(profile);
    asx_runtime *rt = runtime_of(&config);
    asx_task_id task, other;
    asx_witness_id requested, cancelling, completed, elsewhere, forged;
    asx_witness_info info;
    int32_t answer = ASX_POLL_PENDING;

    task = spawn(rt, root(rt), looks_at_itself, &answer);
    other = spawn(rt, root(rt), looks_at_itself, &answer);
    run(rt, 0);
    ANSWERS(asx_task_witness(rt, task, &requested), ASX_E_EMPTY);
    OK(asx_task_cancel(rt, task, ASX_CANCEL_TIMEOUT, "late", NULL));
    OK(asx_task_witness(rt, task, &requested));
    EQUAL(asx_handle_tag(requested.bits), ASX_TAG_CANCEL_WITNESS);
    EQUAL(asx_handle_mask(requested.bits), ASX_MASK(ASX_CANCEL_REQUESTED));
    OK(asx_task_acknowledge(rt, task));
    OK(asx_task_cancel(rt, task, ASX_CANCEL_SHUTDOWN, NULL, NULL));
    OK(asx_task_witness(rt, task, &cancelling));
    answer = ASX_POLL_CANCELLED;
    OK(asx_task_wake(rt, task));
    run(rt, 0);
    OK(asx_task_witness(rt, task, &completed));
    EQUAL(asx_handle_mask(completed.bits), ASX_MASK(ASX_CANCEL_COMPLETED));
    info = about(rt, cancelling);
    EQUAL(info.phase, ASX_CANCEL_CANCELLING);
    EQUAL(info.kind, ASX_CANCEL_SHUTDOWN);
    EQUAL(info.epoch, 1);
    EQUAL(asx_same_task(info.task, task), 1);
    EQUAL(asx_same_region(info.region, root(rt)), 1);
    EQUAL(about(rt, requested).kind, ASX_CANCEL_TIMEOUT);

    OK(asx_witness_validate(rt, requested, requested));
    OK(asx_witness_validate(rt, requested, cancelling));
    OK(asx_witness_validate(rt, requested, completed));
    ANSWERS(asx_witness_validate(rt, completed, cancelling), ASX_E_WITNESS_PHASE_REGRESSION);
    OK(asx_task_cancel(rt, other, ASX_CANCEL_USER, NULL, NULL));
    OK(asx_task_witness(rt, other, &elsewhere));
    ANSWERS(asx_witness_validate(rt, requested, elsewhere), ASX_E_WITNESS_TASK_MISMATCH);

    /* Statements from elsewhere, each wrong in one thing more, in the order of the contract. */
    OK(asx_witness_check(rt, requested, &info));
    info.kind = ASX_CANCEL_USER;
    ANSWERS(asx_witness_check(rt, requested, &info), ASX_E_WITNESS_REASON_WEAKENED);
    info.phase = ASX_CANCEL_REQUESTED;
    ANSWERS(asx_witness_check(rt, cancelling, &info), ASX_E_WITNESS_PHASE_REGRESSION);
    info.epoch = 2;
    ANSWERS(asx_witness_check(rt, cancelling, &info), ASX_E_WITNESS_EPOCH_MISMATCH);
    OK(asx_region_open(rt, root(rt), NULL, &info.region));
    ANSWERS(asx_witness_check(rt, cancelling, &info), ASX_E_WITNESS_REGION_MISMATCH);
    info.task = other;
    ANSWERS(asx_witness_check(rt, cancelling, &info), ASX_E_WITNESS_TASK_MISMATCH);
    info.phase = 4;
    ANSWERS(asx_witness_check(rt, cancelling, &info), ASX_E_INVALID_ARGUMENT);

    /* A witness that claims another phase than it has is refused; one that is released is gone. */
    forged = requested;
    forged.bits ^= UINT64_C(3) << 32;
    ANSWERS(asx_witness_validate(rt, forged, completed), ASX_E_INVALID_ARGUMENT);
    OK(asx_task_release(rt, task));
    EQUAL(about(rt, completed).kind, ASX_CANCEL_SHUTDOWN);
    OK(asx_witness_release(rt, completed));
    ANSWERS(asx_witness_release(rt, completed), ASX_E_STALE_HANDLE);
    ANSWERS(asx_witness_validate(rt, requested, completed), ASX_E_STALE_HANDLE);
    finish(rt);
}

/* Where tasks have a limit, witnesses that are not released have one too. */
static void witnesses_are_bounded(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt = runtime_of(&config);
    asx_task_id task;
    asx_witness_id witness;
    asx_status status = ASX_OK;
    asx_stats stats;
    int32_t answer = ASX_POLL_PENDING;
    int i;

    task = spawn(rt, root(rt), looks_at_itself, &answer);
    OK(asx_task_cancel(rt, task, ASX_CANCEL_USER, NULL, NULL));
    for (i = 0; i < 100000 && status == ASX_OK; ++i)
        status = asx_task_witness(rt, task, &witness);
    EQUAL(status, ASX_E_RESOURCE_EXHAUSTED);
    EQUAL(i, 4 * 64 + 1);
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.pool_spills, 0);
    OK(asx_runtime_destroy(rt));
}

/* A runtime changes hands: step by step, and back again. */
struct hands {
    asx_runtime *rt;
    pthread_mutex_t lock;
    pthread_cond_t turned;
    int turn; /* whose: 0 the maker's, 1 the helper's */
    uint64_t helper;
    asx_transfer certificate;
    asx_task_id task;
};

static void wait_for(struct hands *hands, int turn)
{
    pthread_mutex_lock(&hands->lock);
    while (hands->turn != turn)
        pthread_cond_wait(&hands->turned, &hands->lock);
    pthread_mutex_unlock(&hands->lock);
}

static void pass_to(struct hands *hands, int turn)
{
    pthread_mutex_lock(&hands->lock);
    hands->turn = turn;
    pthread_cond_broadcast(&hands->turned);
    pthread_mutex_unlock(&hands->lock);
}

/* Calls from a thread that the runtime was not transferred to: forbidden behaviour FB-202. */
static void *helps(void *ctx)
{
    struct hands *hands = ctx;
    asx_transfer certificate, forged;
    uint64_t now;

    OK(asx_thread_number(hands->rt, &hands->helper));
    ANSWERS(asx_now(hands->rt, &now), ASX_E_AFFINITY_VIOLATION);
    ANSWERS(asx_runtime_transfer(hands->rt, hands->helper, &hands->certificate),
        ASX_E_AFFINITY_VIOLATION);
    pass_to(hands, 0);
    wait_for(hands, 1);
    forged = certificate = hands->certificate;
    EQUAL(certificate.to == hands->helper && certificate.epoch == 1, 1);
    OK(asx_runtime_accept(hands->rt, &certificate));
    /* One that was never given. */
    ++forged.epoch;
    ANSWERS(asx_runtime_accept(hands->rt, &forged), ASX_E_INVALID_ARGUMENT);
    forged.epoch = certificate.epoch;
    ++forged.from;
    ANSWERS(asx_runtime_accept(hands->rt, &forged), ASX_E_INVALID_ARGUMENT);
    run(hands->rt, 5 * MS);
    OK(asx_task_wake(hands->rt, hands->task));
    OK(asx_runtime_transfer(hands->rt, certificate.from, &hands->certificate));
    ANSWERS(asx_now(hands->rt, &now), ASX_E_AFFINITY_VIOLATION);
    ANSWERS(asx_runtime_accept(hands->rt, &certificate), ASX_E_AFFINITY_VIOLATION);
    pass_to(hands, 0);
    return NULL;
}

static int32_t gives_it_away(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_transfer certificate;
    (void)ctx;
    certificate.struct_size = (uint32_t)sizeof certificate;
    ANSWERS(asx_runtime_transfer(rt, 7, &certificate), ASX_E_REENTRANT);
    return ASX_POLL_PENDING;
}

static void transfers(int32_t profile)
{
    asx_runtime_config config = config_of(profile);
    struct hands hands;
    asx_stats stats;
    asx_transfer first;
    pthread_t helper;
    uint64_t now, own;

    memset(&hands, 0, sizeof hands);
    hands.certificate.struct_size = (uint32_t)sizeof hands.certificate;
    config.flags |= ASX_FLAG_GHOSTS;
    hands.rt = runtime_of(&config);
    pthread_mutex_init(&hands.lock, NULL);
    pthread_cond_init(&hands.turned, NULL);
    hands.turn = 2;
    hands.task = spawn(hands.rt, root(hands.rt), gives_it_away, NULL);
    OK(asx_thread_number(hands.rt, &own));
    EQUAL(pthread_create(&helper, NULL, helps, &hands), 0);
    wait_for(&hands, 0);
    EQUAL(own != hands.helper, 1);
    OK(asx_runtime_transfer(hands.rt, hands.helper, &hands.certificate));
    first = hands.certificate;
    EQUAL(first.from == own && first.to == hands.helper, 1);
    ANSWERS(asx_now(hands.rt, &now), ASX_E_AFFINITY_VIOLATION);
    ANSWERS(asx_runtime_destroy(hands.rt), ASX_E_AFFINITY_VIOLATION);
    pass_to(&hands, 1);
    wait_for(&hands, 0);
    EQUAL(pthread_join(helper, NULL), 0);
    EQUAL(hands.certificate.epoch, 2);
    EQUAL(hands.certificate.from == first.to && hands.certificate.to == own, 1);
    OK(asx_runtime_accept(hands.rt, &hands.certificate));
    ANSWERS(asx_runtime_accept(hands.rt, &first), ASX_E_STALE_HANDLE);
    OK(asx_now(hands.rt, &now));
    EQUAL(now, 5 * MS);
    run(hands.rt, 6 * MS);
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(hands.rt, &stats));
    EQUAL(stats.ghosts[ASX_GHOST_AFFINITY], 6);
    EQUAL(stats.pool_spills, 0);
    finish(hands.rt);
    pthread_cond_destroy(&hands.turned);
    pthread_mutex_destroy(&hands.lock);
}

int main(void)
{
    masks();
    forged_masks();
    witnesses(ASX_PROFILE_CORE);
    witnesses(ASX_PROFILE_EMBEDDED);
    witnesses_are_bounded();
    transfers(ASX_PROFILE_CORE);
    transfers(ASX_PROFILE_EMBEDDED);
    puts("handles: ok");
    return 0;
}
