/* The corpus with an allocator that answers NULL: the n-th time only, and from the n-th time on, for
 * every n; and that every second time as well, so that a runtime gets the least it asks for and is
 * at its last byte everywhere. Included by the program that is made from the corpus, which runs it
 * with the profile that its first argument names, or as each fixture wants it.
 *
 * Once: a call that is refused for it is made again, and must then answer what it should. In the
 * end the digest must be the one that it always is: whatever was refused has changed nothing.
 * From then on: calls may be refused, and no more than that. In all cases the invariants hold, the
 * runtime can be destroyed, nothing was asked for in the middle of a call, and all memory has been
 * given back; that the process is still there shows that nothing has ended it. */
#ifndef FAULTS_H
#define FAULTS_H

enum { NEVER, ONCE, FOREVER };

/* Where the memory is: what a runtime asks for and no more than that; the same with little more
 * than it must have; a pool that is too small and spills; a strict one of the size that is told. */
enum { GROWS, STINGY, SPILLS, STRICT, HOMES };
static const char *const home_names[] = { "grows", "stingy", "spills", "strict" };

static int fault_mode, home, untold;
static unsigned long asked, failing, faults, given, taken, runs, most_asked;

static void *gives(void *hook, size_t size)
{
    (void)hook;
    ++asked;
    if ((fault_mode == ONCE && asked == failing) || (fault_mode == FOREVER && asked >= failing)
        || ((home == STINGY || home == SPILLS) && asked % 2 == 1)) {
        ++faults;
        return NULL;
    }
    ++given;
    return malloc(size);
}

static void takes(void *hook, void *pointer)
{
    (void)hook;
    ++taken;
    free(pointer);
}

static void stop(const char *where, const char *call, asx_status got, asx_status wanted)
{
    fprintf(stderr, "%s, fault %lu, mode %d: %s answers %s, not %s\n", where, failing, fault_mode,
        call, asx_status_name(got), asx_status_name(wanted));
    exit(1);
}

/* How many events there were; 0 without a runtime. */
static uint64_t events(asx_runtime *rt)
{
    asx_journal_info info;
    info.struct_size = (uint32_t)sizeof info;
    return rt && asx_journal_get_info(rt, &info) == ASX_OK ? info.recorded : 0;
}

/* Whether a call was refused for memory that was not there. That is not journaled, unlike the
 * limits that some fixtures want to reach. */
static int refused(asx_status got, unsigned long faults_before, int journaled)
{
    return faults > faults_before && got == ASX_E_RESOURCE_EXHAUSTED && !journaled;
}

static void judge(const char *where, const char *call, asx_status got, asx_status wanted)
{
    /* After a refusal that was not made good anything may follow, but that something broke. */
    int astray = fault_mode == FOREVER && asked >= failing;
    if (got != wanted && (!astray || got == ASX_E_INTERNAL))
        stop(where, call, got, wanted);
}

#define WANT(wanted, call)                                                                         \
    do {                                                                                           \
        unsigned long faults_ = faults;                                                            \
        uint64_t events_ = events(rt);                                                             \
        asx_status got_ = (call);                                                                  \
        int tries_ = 3;                                                                            \
        while (tries_-- && refused(got_, faults_, events(rt) != events_))                          \
            got_ = (call);                                                                         \
        judge(__func__, #call, got_, wanted);                                                      \
        /* Memory may be refused before a limit is reached, which is then not journaled. */        \
        if (home != GROWS && got_ == ASX_E_RESOURCE_EXHAUSTED && events(rt) == events_)             \
            untold = 1;                                                                            \
    } while (0)

#define SAME(id, got, wanted)                                                                      \
    do {                                                                                           \
        int astray_ = untold || (fault_mode == FOREVER && asked >= failing);                       \
        if (!astray_ && (got) != (wanted)) {                                                       \
            fprintf(stderr, "%s, fault %lu: another fingerprint\n", id, failing);                  \
            exit(1);                                                                               \
        }                                                                                          \
        if (rt)                                                                                    \
            WANT(ASX_OK, asx_verify(rt, NULL, 0, NULL));                                           \
    } while (0)

static uint64_t at_most(uint64_t limit, uint64_t most)
{
    return limit < most ? limit : most;
}

/* The same runtime at another home: with limits that no fixture reaches where it has none. */
static asx_runtime_config at_home(const asx_runtime_config *given_config)
{
    asx_runtime_config config = *given_config;
    if (home == GROWS || home == STINGY)
        return config;
    config.flags |= ASX_FLAG_POOL;
    if (home == SPILLS) {
        config.pool_bytes = 16 << 10;
        return config;
    }
    config.flags |= ASX_FLAG_STRICT;
    config.max_tasks = at_most(config.max_tasks, 1500);
    config.max_regions = at_most(config.max_regions, 300);
    config.max_obligations = at_most(config.max_obligations, 1500);
    config.max_channels = at_most(config.max_channels, 64);
    config.max_timers = at_most(config.max_timers, 1500);
    config.max_trace = at_most(config.max_trace, 20000);
    config.max_finalizers = at_most(config.max_finalizers, 100);
    config.max_cleanups = at_most(config.max_cleanups, 100);
    config.max_borrows = at_most(config.max_borrows, 10);
    return config;
}

static asx_runtime *fault_runtime(const asx_runtime_config *given_config)
{
    asx_runtime_config config = at_home(given_config);
    asx_runtime *rt = NULL;
    asx_status got = asx_runtime_create(&config, &rt);
    int tries = 3;
    while (tries-- && refused(got, 0, 0)) {
        EQUAL(rt == NULL, 1);
        EQUAL(given, taken);
        got = asx_runtime_create(&config, &rt);
    }
    judge("create", "asx_runtime_create", got, ASX_OK);
    return rt;
}

static asx_status fault_destroy(asx_runtime *rt)
{
    asx_stats stats;
    stats.struct_size = (uint32_t)sizeof stats;
    if (!rt)
        return ASX_OK;
    OK(asx_get_stats(rt, &stats));
    if (home != SPILLS)
        EQUAL(stats.pool_spills, 0);
    return asx_runtime_destroy(rt);
}

/* For every n, until there is no n-th time any more. */
static void for_every_fault(void (*fixture)(void))
{
    for (fault_mode = NEVER; fault_mode <= FOREVER; ++fault_mode) {
        for (failing = 1;; ++failing) {
            asked = faults = given = taken = 0;
            untold = 0;
            fixture();
            EQUAL(given, taken);
            ++runs;
            if (fault_mode == NEVER || asked < failing)
                break;
        }
        most_asked = asked > most_asked ? asked : most_asked;
    }
}

#define runtime_of fault_runtime
#define asx_runtime_destroy fault_destroy
#define FIXTURE(name) for_every_fault(name)
#define BEGIN()                                                                                    \
    OK(asx_set_allocator(gives, takes, NULL));                                                     \
    for (home = GROWS; home < HOMES; ++home) {                                                     \
        runs = most_asked = 0
#define END()                                                                                      \
        printf("faults, %s: every n up to %lu, %lu runs ok\n", home_names[home], most_asked, runs); \
    }

#endif
