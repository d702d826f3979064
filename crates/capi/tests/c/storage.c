/* Memory of regions: until Closed and no longer, within limits, from the pool, watched. */
#include "check.h"
#include <setjmp.h>

/* An allocator that counts, and refuses from a call on. */
static long blocks, calls, last_call = -1;

static void *gives(void *hook, size_t size)
{
    void *block;
    (void)hook;
    ++calls;
    /* A sanitizer's malloc does not say no to giants: it aborts. */
    if ((last_call >= 0 && calls > last_call) || size > (size_t)1 << 30)
        return NULL;
    block = malloc(size);
    blocks += block != NULL;
    return block;
}

static void takes(void *hook, void *block)
{
    (void)hook;
    blocks -= block != NULL;
    free(block);
}

static asx_region_id open_region(asx_runtime *rt)
{
    asx_region_id region;
    OK(asx_region_open(rt, root(rt), NULL, &region));
    return region;
}

static uint64_t in_use(asx_runtime *rt, asx_region_id region)
{
    asx_region_info info;
    info.struct_size = (uint32_t)sizeof info;
    OK(asx_region_get_info(rt, region, &info));
    return info.storage;
}

static uint64_t ghosts(asx_runtime *rt)
{
    asx_stats stats;
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    return stats.ghosts[ASX_GHOST_STORAGE];
}

static int is_zero(const unsigned char *bytes, size_t size)
{
    size_t i;
    for (i = 0; i < size; ++i)
        if (bytes[i] != 0)
            return 0;
    return 1;
}

/* Pieces are zero, aligned, apart, writable, and counted; refused and gone once Closed. */
static void until_closed(uint32_t flags)
{
    enum { PIECES = 200 };
    unsigned char *pieces[PIECES];
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    asx_region_id region;
    void *out = &config;
    uint64_t counted = 0;
    long before;
    int i, round;
    config.flags |= flags | ASX_FLAG_NO_JOURNAL; /* which would grow */
    rt = runtime_of(&config);
    region = open_region(rt);
    for (i = 0; i < PIECES; ++i) {
        size_t size = (size_t)(1 + i * 7 % 300), align = (size_t)1 << i % 13;
        OK(asx_region_alloc(rt, region, size, align, &out));
        pieces[i] = (unsigned char *)out;
        EQUAL((uintptr_t)out % align, 0);
        EQUAL(is_zero(pieces[i], size), 1);
        memset(pieces[i], i, size);
        counted += (size + align - 1) / align * align;
        EQUAL(in_use(rt, region), counted);
    }
    for (i = 0; i < PIECES; ++i) {
        int at;
        for (at = 0; at < 1 + i * 7 % 300; ++at)
            EQUAL(pieces[i][at], (unsigned char)i);
    }
    /* Counted and taken are the same account. */
    OK(asx_region_use_storage(rt, region, 100));
    EQUAL(in_use(rt, region), counted + 100);
    OK(asx_region_end(rt, region));
    EQUAL(in_use(rt, region), 0);
    out = NULL;
    ANSWERS(asx_region_alloc(rt, region, 1, 1, &out), ASX_E_REGION_CLOSED);
    EQUAL(out == NULL, 1);
    EQUAL(ghosts(rt), flags & ASX_FLAG_GHOSTS ? 1 : 0);
    /* The runtime has it again, and others can have it. */
    before = calls;
    for (round = 0; flags == 0 && round < 50; ++round) {
        asx_region_id other = open_region(rt);
        for (i = 0; i < PIECES; ++i)
            OK(asx_region_alloc(rt, other, (size_t)(1 + i * 7 % 300), (size_t)1 << i % 13, &out));
        EQUAL(in_use(rt, other), counted);
        OK(asx_region_end(rt, other));
        OK(asx_region_release(rt, other));
    }
    EQUAL(calls, before);
    OK(asx_region_release(rt, region));
    ANSWERS(asx_region_alloc(rt, region, 1, 1, &out), ASX_E_STALE_HANDLE);
    verify(rt);
    OK(asx_runtime_destroy(rt));
    EQUAL(blocks, 0);
}

static void bad_sizes(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region = open_region(rt);
    void *out = NULL;
    size_t size;
    ANSWERS(asx_region_alloc(rt, region, 0, 1, &out), ASX_E_INVALID_ARGUMENT);
    ANSWERS(asx_region_alloc(rt, region, 8, 24, &out), ASX_E_INVALID_ARGUMENT);
    ANSWERS(asx_region_alloc(rt, region, 8, ASX_ALIGN_MOST * 2, &out), ASX_E_INVALID_ARGUMENT);
    for (size = SIZE_MAX; size > (SIZE_MAX >> 4); size -= SIZE_MAX / 37)
        ANSWERS(asx_region_alloc(rt, region, size, ASX_ALIGN_MOST, &out), ASX_E_RESOURCE_EXHAUSTED);
    EQUAL(in_use(rt, region), 0);
    EQUAL(out == NULL, 1);
    OK(asx_region_alloc(rt, region, 8, ASX_ALIGN_MOST, &out));
    OK(asx_runtime_destroy(rt));
}

/* The memory limit counts what is taken, and a refusal takes nothing. */
static void memory_limit(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    asx_region_id region;
    void *out = NULL;
    uint64_t taken = 0;
    config.max_memory = 64 * 1024;
    rt = runtime_of(&config);
    region = open_region(rt);
    while (asx_region_alloc(rt, region, 1000, 8, &out) == ASX_OK)
        taken += 1000;
    EQUAL(taken > 60000 && taken <= 64 * 1024, 1);
    EQUAL(in_use(rt, region), taken);
    ANSWERS(asx_region_alloc(rt, region, 1000, 8, &out), ASX_E_RESOURCE_EXHAUSTED);
    EQUAL(in_use(rt, region), taken);
    /* What a closed region gives back others can have. */
    OK(asx_region_end(rt, region));
    region = open_region(rt);
    OK(asx_region_alloc(rt, region, 60000, 8, &out));
    OK(asx_runtime_destroy(rt));
}

/* All of it lies in the pool; what does not fit is refused, and given back it can be had again. */
static void from_the_pool(int32_t profile, uint32_t flags)
{
    asx_runtime_config config = config_of(profile);
    asx_runtime *rt;
    asx_stats stats;
    uint64_t first = 0;
    long before;
    int round;
    config.flags |= flags;
    rt = runtime_of(&config);
    before = calls;
    for (round = 0; round < 5; ++round) {
        asx_region_id region = open_region(rt);
        void *out = NULL;
        uint64_t taken = 0;
        while (asx_region_alloc(rt, region, 500, 16, &out) == ASX_OK) {
            memset(out, 7, 500);
            taken += 500;
        }
        ANSWERS(asx_region_alloc(rt, region, 1 << 20, 16, &out), ASX_E_RESOURCE_EXHAUSTED);
        EQUAL(taken > 50000, 1);
        /* In the first round the list of pieces grows, and leaves its old memory. Later rounds lose
         * nothing to speak of. */
        EQUAL(taken > (round < 2 ? first / 10 * 8 : first / 100 * 98), 1);
        if (round < 2)
            first = taken;
        OK(asx_region_end(rt, region));
        OK(asx_region_release(rt, region));
    }
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    EQUAL(stats.pool_spills, 0);
    EQUAL(stats.ghosts[ASX_GHOST_STORAGE], 0);
    EQUAL(calls, before);
    OK(asx_runtime_destroy(rt));
    EQUAL(blocks, 0);
}

/* Every allocation that fails is a refusal that has changed nothing. */
static void no_memory(void)
{
    long at;
    for (at = 0; at < 12; ++at) {
        asx_runtime *rt = runtime();
        asx_region_id region = open_region(rt);
        asx_status status;
        void *out = NULL;
        long before = blocks;
        last_call = calls + at;
        status = asx_region_alloc(rt, region, 100000, 64, &out);
        last_call = -1;
        EQUAL(status == ASX_OK || status == ASX_E_RESOURCE_EXHAUSTED, 1);
        EQUAL(at > 0 || status == ASX_E_RESOURCE_EXHAUSTED, 1);
        EQUAL(at < 11 || status == ASX_OK, 1);
        if (status != ASX_OK) {
            EQUAL(in_use(rt, region), 0);
            EQUAL(blocks <= before + 1, 1); /* a table may have grown */
            OK(asx_region_alloc(rt, region, 100000, 64, &out));
        }
        EQUAL(in_use(rt, region), 100032);
        verify(rt);
        OK(asx_runtime_destroy(rt));
        EQUAL(blocks, 0);
    }
}

/* A task whose context is its region's memory, down to its drop callback. */
struct state {
    int polls, magic;
};

static int dropped, jumps;
static jmp_buf out_of;

static void on_drop(void *ctx)
{
    EQUAL(((struct state *)ctx)->magic, 77);
    ++dropped;
}

static int32_t works(asx_cx *cx, void *ctx)
{
    (void)cx;
    struct state *state = (struct state *)ctx;
    EQUAL(state->magic, 77);
    ++state->polls;
    if (jumps)
        longjmp(out_of, 1);
    return ASX_POLL_PENDING;
}

static asx_region_id with_task(asx_runtime *rt, asx_task_id *task)
{
    asx_region_id region = open_region(rt);
    asx_body body = asx_poll_with(works, NULL);
    void *out;
    OK(asx_region_alloc(rt, region, sizeof(struct state), sizeof(int), &out));
    ((struct state *)out)->magic = 77;
    body.ctx = out;
    body.drop = on_drop;
    OK(asx_task_spawn(rt, region, body, NULL, task));
    OK(asx_region_defer(rt, region, body));
    run(rt, 0);
    return region;
}

static void however_it_ends(void)
{
    asx_runtime *volatile rt;
    asx_region_id region;
    asx_task_id task;
    volatile int way;
    for (way = 0; way < 4; ++way) {
        dropped = 0;
        rt = runtime();
        region = with_task(rt, &task);
        if (way == 0) { /* by force */
            OK(asx_region_close(rt, region, ASX_CANCEL_USER, NULL, 10, NULL));
            run(rt, 10);
            run(rt, 20);
            run(rt, 30);
            EQUAL(in_use(rt, region), 0);
            EQUAL(dropped, 2);
        } else if (way == 1) { /* by a jump */
            jumps = 1;
            OK(asx_task_wake(rt, task));
            if (setjmp(out_of) == 0)
                (void)asx_step(rt, 1, 1, NULL);
            jumps = 0;
            OK(asx_runtime_recover(rt));
            EQUAL(outcome(rt, task), ASX_OUTCOME_PANICKED);
        } else if (way == 2) { /* by a shutdown */
            OK(asx_shutdown(rt, 0, 5));
            run(rt, 5);
            run(rt, 10);
            run(rt, 15);
            OK(asx_quiescent(rt, NULL));
        }
        OK(asx_runtime_destroy(rt));
        EQUAL(dropped, 2);
        EQUAL(blocks, 0);
    }
}

static asx_ghost last_ghost;
static int reported;

static void on_ghost(void *hook, const asx_ghost *ghost)
{
    (void)hook;
    last_ghost = *ghost;
    ++reported;
}

/* Who writes behind the end, or later than Closed, is noticed. */
static void watched(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    asx_region_id region, other;
    unsigned char *bytes;
    void *out;
    config.flags |= ASX_FLAG_GHOSTS;
    config.ghost = on_ghost;
    rt = runtime_of(&config);
    reported = 0;

    region = open_region(rt);
    OK(asx_region_alloc(rt, region, 10, 1, &out));
    bytes = (unsigned char *)out;
    OK(asx_region_alloc(rt, region, 10, 1, &out));
    bytes[10] = 1;
    OK(asx_region_end(rt, region));
    EQUAL(reported, 1);
    EQUAL(last_ghost.kind, ASX_GHOST_STORAGE);
    EQUAL((uint32_t)last_ghost.bits, (uint32_t)region.bits);
    EQUAL(last_ghost.generation, region.generation);
    /* Overwritten, so that nobody reads on by mistake. */
    EQUAL(bytes[0], 0xDD);
    EQUAL(bytes[3], 0xDD);

    verify(rt);
    EQUAL(reported, 1);
    bytes[3] = 9;
    verify(rt);
    EQUAL(reported, 2);
    verify(rt);
    EQUAL(reported, 2);

    /* The next one that closes shows it too, and the end. */
    other = open_region(rt);
    OK(asx_region_alloc(rt, other, 10, 1, &out));
    bytes[4] = 9;
    OK(asx_region_end(rt, other));
    EQUAL(reported, 3);
    EQUAL(ghosts(rt), 3);
    ANSWERS(asx_region_alloc(rt, other, 10, 1, &out), ASX_E_REGION_CLOSED);
    EQUAL(reported, 4);
    EQUAL(last_ghost.status, ASX_E_REGION_CLOSED);
    bytes[5] = 9;
    OK(asx_runtime_destroy(rt));
    EQUAL(reported, 5);
    EQUAL(blocks, 0);
}

/* Much that is closed does not stay for ever. */
static void what_is_kept_is_bounded(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_runtime *rt;
    long most = 0;
    int i;
    config.flags |= ASX_FLAG_GHOSTS;
    rt = runtime_of(&config);
    for (i = 0; i < 500; ++i) {
        asx_region_id region = open_region(rt);
        void *out;
        OK(asx_region_alloc(rt, region, 4000, 8, &out));
        OK(asx_region_end(rt, region));
        OK(asx_region_release(rt, region));
        if (i == 100)
            most = blocks;
    }
    EQUAL(blocks <= most + 4, 1);
    OK(asx_runtime_destroy(rt));
}

int main(void)
{
    OK(asx_set_allocator(gives, takes, NULL));
    until_closed(0);
    until_closed(ASX_FLAG_GHOSTS);
    bad_sizes();
    memory_limit();
    from_the_pool(ASX_PROFILE_EMBEDDED, 0);
    from_the_pool(ASX_PROFILE_EMBEDDED, ASX_FLAG_GHOSTS);
    from_the_pool(ASX_PROFILE_AUTOMOTIVE, 0);
    no_memory();
    however_it_ends();
    watched();
    what_is_kept_is_bounded();
    EQUAL(blocks, 0);
    puts("storage: ok");
    return 0;
}
