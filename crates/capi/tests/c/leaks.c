/* A leaked obligation is counted and reported once, with and without a journal. */
#include "check.h"

struct told {
    int lines;
    char text[256];
};

static void line(void *hook, int32_t level, const char *text, size_t size)
{
    struct told *told = hook;
    EQUAL(level, ASX_LOG_WARN);
    EQUAL(size < sizeof told->text, 1);
    memcpy(told->text, text, size + 1);
    told->lines++;
}

static uint64_t leaked(asx_runtime *rt)
{
    asx_stats stats;
    stats.struct_size = (uint32_t)sizeof stats;
    OK(asx_get_stats(rt, &stats));
    return stats.obligations_leaked;
}

static int says(const struct told *told, const char *what)
{
    return strstr(told->text, what) != NULL;
}

/* By a region that closes; the place is that of the call that has reserved it. */
static void by_a_region(int32_t profile, uint32_t flags)
{
    asx_runtime_config config = config_of(profile);
    struct told told = { 0, "" };
    char place[64];
    asx_runtime *rt;
    asx_region_id region;
    asx_obligation_id kept, lost, silent;
    char dump[512];

    config.flags |= flags;
    config.hook = &told;
    config.log = line;
    rt = runtime_of(&config);
    OK(asx_region_open(rt, root(rt), NULL, &region));
    snprintf(place, sizeof place, "leaks.c:%d", __LINE__ + 1);
    OK(ASX_CALL(rt, asx_obligation_reserve(rt, region, &lost)));
    OK(ASX_CALL(rt, asx_obligation_reserve(rt, region, &kept)));
    OK(asx_obligation_commit(rt, kept));
    EQUAL(leaked(rt), 0);
    if (has(ASX_FEATURE_DUMP)) {
        OK(asx_dump(rt, dump, sizeof dump, NULL));
        EQUAL(strstr(dump, "obligations=1") != NULL, 1);
    }
    OK(asx_region_close(rt, region, ASX_CANCEL_USER, NULL, ASX_NONE, NULL));
    run(rt, 0);
    EQUAL(leaked(rt), 1);
    ANSWERS(asx_obligation_commit(rt, lost), ASX_E_OBLIGATION_LEAKED);
    EQUAL(told.lines, has(ASX_FEATURE_DUMP));
    if (has(ASX_FEATURE_DUMP)) {
        EQUAL(says(&told, "obligation 1 of region"), 1);
        EQUAL(says(&told, place), 1);
    }

    /* By the end of the runtime, without a place. */
    OK(asx_obligation_reserve(rt, root(rt), &silent));
    OK(asx_runtime_destroy(rt));
    EQUAL(told.lines, 2 * has(ASX_FEATURE_DUMP));
    EQUAL(says(&told, "reserved at"), 0);
}

/* By a tracked permit that is dropped. */
static void by_a_permit(void)
{
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    struct told told = { 0, "" };
    asx_channel_sender sender;
    asx_channel_receiver receiver;
    asx_send_permit permit;
    asx_runtime *rt;
    asx_region_id region;
    int32_t leak = 0;

    config.flags |= ASX_FLAG_NO_JOURNAL;
    config.hook = &told;
    config.log = line;
    rt = runtime_of(&config);
    OK(asx_region_open(rt, root(rt), NULL, &region));
    OK(asx_channel_create(rt, &region, 1, 1, &sender, &receiver));
    OK(asx_channel_try_reserve(&sender, NULL, 1, &permit));
    OK(asx_send_permit_drop(&permit, &leak));
    EQUAL(leak, 1);
    EQUAL(leaked(rt), 1);
    EQUAL(told.lines, has(ASX_FEATURE_DUMP));
    OK(asx_runtime_destroy(rt));
    EQUAL(told.lines, has(ASX_FEATURE_DUMP));
}

int main(void)
{
    int32_t profile;
    for (profile = ASX_PROFILE_CORE; profile <= ASX_PROFILE_AUTOMOTIVE; ++profile) {
        by_a_region(profile, 0);
        by_a_region(profile, ASX_FLAG_NO_JOURNAL);
    }
    by_a_permit();
    puts("leaks: ok");
    return 0;
}
