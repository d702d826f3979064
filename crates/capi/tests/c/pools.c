/* Pools, and what runtimes of one process have to do with each other: nothing. */
#define _POSIX_C_SOURCE 200809L
#include "stage.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 20, CHURN = 200, CORES = 100 };

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static size_t given, taken;
/* Nothing is given that is larger. */
static size_t largest = SIZE_MAX;

/* A runtime that the allocator uses whenever it is asked; not on the way there. */
static asx_runtime *neighbour;
static int in_neighbour, visits;

static int32_t idle(asx_cx *cx, void *ctx)
{
    (void)ctx;
    return asx_checkpoint(cx) == ASX_OK ? ASX_POLL_PENDING : ASX_POLL_CANCELLED;
}

static void visit(void)
{
    asx_task_id task;
    if (!neighbour || in_neighbour)
        return;
    in_neighbour = 1;
    if (asx_task_spawn(neighbour, root(neighbour), asx_poll_with(idle, NULL), NULL, &task) == ASX_OK)
        ++visits;
    OK(asx_step(neighbour, 0, 1, NULL));
    in_neighbour = 0;
}

static void *gives(void *hook, size_t size)
{
    (void)hook;
    if (size > largest)
        return NULL;
    pthread_mutex_lock(&counting);
    ++given;
    pthread_mutex_unlock(&counting);
    visit();
    return malloc(size);
}

static void takes(void *hook, void *pointer)
{
    (void)hook;
    pthread_mutex_lock(&counting);
    ++taken;
    pthread_mutex_unlock(&counting);
    visit();
    free(pointer);
}

static asx_stats stats_of(asx_runtime *rt)
{
    asx_stats stats;
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    return stats;
}

/* One pool more than there can be is refused, and nothing is left of it; runtimes without a pool
 * are not counted. */
static void seats(void)
{
    static unsigned char room[(2 << 20) + 16];
    unsigned char *memory = room + (16 - (uintptr_t)room % 16) % 16;
    asx_runtime_config pooled = config_of(ASX_PROFILE_EMBEDDED), core = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt[ASX_POOLS_MOST], *cores[CORES], *more = NULL;
    uint64_t first = 0;
    size_t i, given_before, taken_before;

    for (i = 0; i < ASX_POOLS_MOST; ++i)
        rt[i] = runtime_of(&pooled);
    given_before = given;
    taken_before = taken;
    for (i = 0; i < 3; ++i)
        ANSWERS(asx_runtime_create(&pooled, &more), ASX_E_RESOURCE_EXHAUSTED);
    EQUAL(more == NULL, 1);
    EQUAL(given - given_before, taken - taken_before);
    /* Memory that was given is not touched either. */
    memset(room, 0x5a, sizeof room);
    pooled.pool_memory = memory;
    pooled.pool_bytes = 2 << 20;
    ANSWERS(asx_runtime_create(&pooled, &more), ASX_E_RESOURCE_EXHAUSTED);
    for (i = 0; i < sizeof room; ++i)
        EQUAL(room[i], 0x5a);

    core.max_trace = 256;
    for (i = 0; i < CORES; ++i)
        cores[i] = runtime_of(&core);
    for (i = 0; i < CORES; ++i) {
        round_of(cores[i], 0);
        EQUAL(stats_of(cores[i]).pool_size, 0);
        if (i == 0)
            first = digest(cores[i]);
        EQUAL(digest(cores[i]), first);
    }
    for (i = 0; i < ASX_POOLS_MOST; ++i) {
        round_of(rt[i], 0);
        EQUAL(digest(rt[i]), first);
        EQUAL(stats_of(rt[i]).pool_spills, 0);
    }

    OK(asx_runtime_destroy(rt[7]));
    pooled = config_of(ASX_PROFILE_EMBEDDED);
    rt[7] = runtime_of(&pooled);
    ANSWERS(asx_runtime_create(&pooled, &more), ASX_E_RESOURCE_EXHAUSTED);
    round_of(rt[7], 0);
    EQUAL(digest(rt[7]), first);
    for (i = 0; i < ASX_POOLS_MOST; ++i)
        OK(asx_runtime_destroy(rt[i]));
    for (i = 0; i < CORES; ++i)
        OK(asx_runtime_destroy(cores[i]));
    EQUAL(given, taken);
}

/* A pool and a channel that memory is not to be had for are refused; nothing is left of them. */
static void scarce(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE), pooled = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt, *more = NULL;
    asx_channel_id channel;
    uint64_t before;
    int i;

    config.max_trace = 16;
    rt = runtime_of(&config);
    before = digest(rt);
    largest = 1 << 16;
    for (i = 0; i < 2 * ASX_POOLS_MOST; ++i)
        ANSWERS(asx_runtime_create(&pooled, &more), ASX_E_RESOURCE_EXHAUSTED);
    ANSWERS(make_channel(rt, NULL, 1000, 1024, &channel), ASX_E_RESOURCE_EXHAUSTED);
    EQUAL(digest(rt), before);
    largest = SIZE_MAX;
    more = runtime_of(&pooled);
    OK(asx_runtime_destroy(more));
    OK(make_channel(rt, NULL, 1000, 1024, &channel));
    OK(asx_runtime_destroy(rt));
    EQUAL(given, taken);
}

/* Memory that a runtime has cannot be given to another, nor more than there can be. */
static void memory_of_one(void)
{
    static unsigned char room[(2 << 20) + 16];
    unsigned char *memory = room + (16 - (uintptr_t)room % 16) % 16;
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED), other;
    asx_runtime *rt, *second = NULL;

    config.pool_memory = memory;
    config.pool_bytes = UINT64_MAX;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    config.pool_bytes = UINT64_MAX - (uintptr_t)memory + 1;
    ANSWERS(asx_runtime_create(&config, &rt), ASX_E_INVALID_ARGUMENT);
    config.pool_bytes = 1 << 20;
    rt = runtime_of(&config);
    ANSWERS(asx_runtime_create(&config, &second), ASX_E_INVALID_ARGUMENT);
    other = config;
    other.pool_memory = memory + (1 << 20) - 16;
    ANSWERS(asx_runtime_create(&other, &second), ASX_E_INVALID_ARGUMENT);
    other.pool_memory = memory + (1 << 20);
    second = runtime_of(&other);
    round_of(rt, 0);
    round_of(second, 0);
    EQUAL(digest(rt), digest(second));
    OK(asx_runtime_destroy(rt));
    rt = runtime_of(&config);
    round_of(rt, 0);
    OK(asx_runtime_destroy(rt));
    OK(asx_runtime_destroy(second));
}

/* A pool that runs out goes to the allocator, which uses another runtime meanwhile: each has its
 * own memory, and the other outlives the one. */
static void neighbours(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt, *kept;
    asx_task_id task;
    char message[4000] = "";
    int at_creation, in_calls, i;

    config.max_tasks = config.max_ready = 10000;
    config.pool_bytes = 64 << 20;
    kept = runtime_of(&config);
    neighbour = kept;
    config.pool_bytes = 1 << 14;
    config.flags &= ~(uint32_t)ASX_FLAG_STRICT;
    rt = runtime_of(&config);
    at_creation = visits;
    EQUAL(at_creation > 0, 1);
    EQUAL(stats_of(rt).pool_spills > 0, 1);
    for (i = 0; i < 2000; ++i)
        OK(asx_task_spawn(rt, root(rt), asx_poll_with(idle, NULL), NULL, &task));
    memset(message, 'x', sizeof message - 1);
    OK(asx_region_close(rt, root(rt), ASX_CANCEL_USER, message, ASX_NONE, NULL));
    in_calls = visits;
    EQUAL(in_calls > at_creation, 1);
    OK(asx_runtime_destroy(rt));
    EQUAL(visits > in_calls, 1);
    neighbour = NULL;
    EQUAL(stats_of(kept).pool_spills, 0);
    verify(kept);
    OK(asx_runtime_destroy(kept));
}

/* A channel whose messages and permits have no room in the pool is refused; of one that was made,
 * every slot can be used. */
static void channels(void)
{
    size_t capacity, refused = 0, before = given;
    for (capacity = 1; capacity < 1 << 16; capacity *= 2) {
        static unsigned char memory[3 << 20];
        asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
        uint64_t message = 0;
        asx_runtime *rt;
        asx_channel_id channel;
        static asx_send_permit permits[1 << 16];
        asx_status status;
        size_t i;
        OK(asx_runtime_config_pool_size(&config, &config.pool_bytes));
        config.pool_memory = memory + (16 - (uintptr_t)memory % 16) % 16;
        rt = runtime_of(&config);
        status = make_channel(rt, NULL, capacity, sizeof message, &channel);
        if (status != ASX_OK) {
            ANSWERS(status, ASX_E_RESOURCE_EXHAUSTED);
            ++refused;
        } else {
            for (i = 0; i < capacity; ++i)
                OK(asx_channel_try_send(SENDER(rt, channel), &message));
            for (i = 0; i < capacity; ++i)
                OK(asx_channel_try_recv(RECEIVER(rt, channel), &message));
            for (i = 0; i < capacity; ++i)
                OK(asx_channel_try_reserve(SENDER(rt, channel), NULL, 0, &permits[i]));
            for (i = 0; i < capacity; ++i)
                OK(asx_send_permit_try_abort(&permits[i]));
            OK(asx_channel_sender_close(SENDER(rt, channel)));
            OK(asx_channel_receiver_close(RECEIVER(rt, channel)));
            EQUAL(refused, 0);
        }
        /* What was promised to a channel that is closed can be had again. */
        OK(make_channel(rt, NULL, 1, sizeof message, &channel));
        EQUAL(stats_of(rt).pool_spills, 0);
        OK(asx_runtime_destroy(rt));
    }
    EQUAL(refused > 0 && refused < 10, 1);
    EQUAL(given, before);
}

struct worker {
    uint64_t digest, spills;
};

static void *works(void *ctx)
{
    struct worker *worker = (struct worker *)ctx;
    asx_runtime_config config = config_of(ASX_PROFILE_EMBEDDED);
    asx_runtime *rt = runtime_of(&config);
    int i;
    for (i = 0; i < ROUNDS; ++i)
        round_of(rt, (uint64_t)i * 10 * MS);
    worker->digest = digest(rt);
    worker->spills = stats_of(rt).pool_spills;
    OK(asx_runtime_destroy(rt));
    return NULL;
}

/* Pools come and go on some threads while runtimes with and without one live on others. */
static void *churns(void *ctx)
{
    int32_t profile = *(int32_t *)ctx;
    int i;
    for (i = 0; i < CHURN; ++i) {
        asx_runtime_config config = config_of(profile);
        asx_runtime *rt;
        config.max_trace = 16;
        rt = runtime_of(&config);
        spawn(rt, root(rt), idle, NULL);
        run(rt, 0);
        OK(asx_runtime_destroy(rt));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t workers[THREADS], churners[THREADS];
    struct worker told[THREADS];
    int32_t profiles[THREADS];
    int i;
    for (i = 0; i < THREADS; ++i) {
        profiles[i] = i % 2 ? ASX_PROFILE_CORE : ASX_PROFILE_EMBEDDED;
        EQUAL(pthread_create(&churners[i], NULL, churns, &profiles[i]), 0);
        EQUAL(pthread_create(&workers[i], NULL, works, &told[i]), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        EQUAL(pthread_join(workers[i], NULL), 0);
        EQUAL(pthread_join(churners[i], NULL), 0);
        EQUAL(told[i].digest, told[0].digest);
        EQUAL(told[i].spills, 0);
    }
    EQUAL(given, taken);
}

int main(void)
{
    OK(asx_set_allocator(gives, takes, NULL));
    seats();
    scarce();
    memory_of_one();
    channels();
    neighbours();
    threads();
    puts("pools: ok");
    return 0;
}
