/* What asx_last_error says beside what the abuse suite asks of it: fields, hooks, what is kept. */
#include "check.h"

static asx_error_info error;

static const char *or_none(const char *text)
{
    return text == NULL ? "none" : text;
}

static void is(const char *what, const char *got, const char *wanted)
{
    if (strcmp(or_none(got), wanted) != 0) {
        fprintf(stderr, "%s is %s, not %s\n", what, or_none(got), wanted);
        exit(1);
    }
}

/* The last failure is this one. */
static void told(asx_runtime *rt, asx_status status, const char *function, const char *argument,
    const char *field)
{
    memset(&error, 0, sizeof error);
    error.struct_size = (uint32_t)sizeof error;
    OK(asx_last_error(rt, &error));
    EQUAL(error.status, status);
    EQUAL(error.struct_size, sizeof error);
    is("the function", error.function, function);
    is("the argument", error.argument, argument);
    is("the field", error.field, field);
    EQUAL(error.text != NULL && strlen(error.text) > 0, 1);
}

static uint64_t count(asx_runtime *rt)
{
    error.struct_size = (uint32_t)sizeof error;
    OK(asx_last_error(rt, &error));
    return error.count;
}

static int32_t pending(asx_cx *cx, void *ctx)
{
    (void)cx;
    (void)ctx;
    return ASX_POLL_PENDING;
}

static void fields_are_named(void)
{
    asx_runtime *rt = runtime();
    asx_task_options options = ASX_TASK_OPTIONS_INIT;
    asx_region_options region_options = ASX_REGION_OPTIONS_INIT;
    asx_when when = asx_after(1);
    asx_region_id region;
    asx_timer_handle timer;
    asx_task_id task;

    error.struct_size = (uint32_t)sizeof error;
    ANSWERS(asx_last_error(rt, &error), ASX_E_EMPTY);
    options.priority = 256;
    ANSWERS(asx_task_spawn(rt, root(rt), asx_poll_with(pending, NULL), &options, &task),
        ASX_E_INVALID_ARGUMENT);
    told(rt, ASX_E_INVALID_ARGUMENT, "asx_task_spawn", "options", "priority");
    EQUAL(error.position, 4);
    EQUAL(error.count, 1);
    options = (asx_task_options)ASX_TASK_OPTIONS_INIT;
    options.flags = 1u << 30;
    ANSWERS(asx_task_spawn(rt, root(rt), asx_poll_with(pending, NULL), &options, &task),
        ASX_E_INVALID_ARGUMENT);
    told(rt, ASX_E_INVALID_ARGUMENT, "asx_task_spawn", "options", "flags");
    options.struct_size = 7;
    ANSWERS(asx_task_spawn(rt, root(rt), asx_poll_with(pending, NULL), &options, &task),
        ASX_E_INVALID_ARGUMENT);
    told(rt, ASX_E_INVALID_ARGUMENT, "asx_task_spawn", "options", "struct_size");
    ANSWERS(asx_task_spawn(rt, root(rt), asx_poll_with(NULL, NULL), NULL, &task),
        ASX_E_INVALID_ARGUMENT);
    told(rt, ASX_E_INVALID_ARGUMENT, "asx_task_spawn", "body", "poll");
    region_options.policy = 7;
    ANSWERS(asx_region_open(rt, root(rt), &region_options, &region), ASX_E_INVALID_ARGUMENT);
    told(rt, ASX_E_INVALID_ARGUMENT, "asx_region_open", "options", "policy");
    when.mode = 7;
    ANSWERS(asx_region_timer_arm(rt, root(rt), when, NULL, &timer), ASX_E_INVALID_ARGUMENT);
    told(rt, ASX_E_INVALID_ARGUMENT, "asx_region_timer_arm", "when", "mode");
    EQUAL(error.count, 6);
    ANSWERS(asx_step(rt, ASX_NOW, 1, NULL), ASX_E_INVALID_ARGUMENT);
    told(rt, ASX_E_INVALID_ARGUMENT, "asx_step", "now", "none");
    OK(asx_runtime_destroy(rt));
}

/* The text says which part of an argument is wrong. */
static void texts_name_the_cause(void)
{
    asx_runtime *rt = runtime();
    asx_region_id region = root(rt);
    asx_region_info info;
    void *out = NULL;
    info.struct_size = (uint32_t)sizeof info;
    ANSWERS(asx_region_alloc(rt, region, SIZE_MAX, 8, &out), ASX_E_RESOURCE_EXHAUSTED);
    told(rt, ASX_E_RESOURCE_EXHAUSTED, "asx_region_alloc", "size", "none");
    is("the text", error.text, "It is more than memory can have.");
    EQUAL(out == NULL, 1);
    region.bits |= UINT64_C(0x1F) << 32;
    ANSWERS(asx_region_get_info(rt, region, &info), ASX_E_INVALID_ARGUMENT);
    told(rt, ASX_E_INVALID_ARGUMENT, "asx_region_get_info", "region", "none");
    is("the text", error.text, "Its handle has a state mask that is not one state of its type.");
    OK(asx_runtime_destroy(rt));
}

/* What only says how things stand is no failure; what goes well leaves the last one alone. */
static void the_last_failure_stays(void)
{
    asx_runtime *rt = runtime();
    asx_channel_id channel;
    asx_send_permit permit;
    asx_task_id task, current;
    int number = 1;
    OK(make_channel(rt, NULL, 1, sizeof number, &channel));
    task = spawn(rt, root(rt), pending, NULL);
    ANSWERS(asx_task_release(rt, task), ASX_E_INVALID_TRANSITION);
    told(rt, ASX_E_INVALID_TRANSITION, "asx_task_release", "none", "none");
    ANSWERS(asx_channel_try_recv(RECEIVER(rt, channel), &number), ASX_E_EMPTY);
    ANSWERS(asx_channel_recv(RECEIVER(rt, channel), CX(rt, task), &number), ASX_E_WOULD_BLOCK);
    OK(asx_channel_try_send(SENDER(rt, channel), &number));
    ANSWERS(asx_channel_try_send(SENDER(rt, channel), &number), ASX_E_FULL);
    ANSWERS(asx_task_current(rt, &current), ASX_E_EMPTY);
    told(rt, ASX_E_INVALID_TRANSITION, "asx_task_release", "none", "none");
    EQUAL(error.count, 1);
    /* Its own failures neither. */
    ANSWERS(asx_last_error(rt, NULL), ASX_E_INVALID_ARGUMENT);
    error.struct_size = 3;
    ANSWERS(asx_last_error(rt, &error), ASX_E_INVALID_ARGUMENT);
    EQUAL(count(rt), 1);
    /* Of two handles the stale one is named. */
    ++task.generation;
    ANSWERS(asx_channel_recv(RECEIVER(rt, channel), CX(rt, task), &number), ASX_E_STALE_HANDLE);
    told(rt, ASX_E_STALE_HANDLE, "asx_channel_recv", "cx", "none");
    OK(asx_channel_sender_close(SENDER(rt, channel)));
    OK(asx_channel_receiver_close(RECEIVER(rt, channel)));
    OK(asx_channel_release(rt, channel));
    --task.generation;
    ANSWERS(asx_channel_try_reserve(SENDER(rt, channel), &task, 0, &permit), ASX_E_STALE_HANDLE);
    told(rt, ASX_E_STALE_HANDLE, "asx_channel_try_reserve", "sender", "none");
    /* A caller of an older header gets as much as it has room for. */
    error.struct_size = 16;
    error.argument = "untouched";
    OK(asx_last_error(rt, &error));
    EQUAL(error.status, ASX_E_STALE_HANDLE);
    is("what lies behind", error.argument, "untouched");
    OK(asx_runtime_destroy(rt));
}

static asx_runtime *hooked;

static void on_drop(void *ctx)
{
    asx_region_id region;
    (void)ctx;
    ANSWERS(asx_region_root(hooked, &region), ASX_E_REENTRANT);
    told(hooked, ASX_E_REENTRANT, "asx_region_root", "none", "none");
}

static int32_t ready(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    (void)ctx;
    ANSWERS(asx_runtime_destroy(rt), ASX_E_REENTRANT);
    told(rt, ASX_E_REENTRANT, "asx_runtime_destroy", "none", "none");
    ANSWERS(asx_step(rt, 0, 1, NULL), ASX_E_REENTRANT);
    told(rt, ASX_E_REENTRANT, "asx_step", "none", "none");
    return ASX_POLL_READY;
}

static void it_can_be_asked_in_callbacks(void)
{
    asx_body body = asx_poll_with(ready, NULL);
    asx_task_id task;
    hooked = runtime();
    body.drop = on_drop;
    OK(asx_task_spawn(hooked, root(hooked), body, NULL, &task));
    run(hooked, 0);
    EQUAL(count(hooked), 3);
    ANSWERS(asx_runtime_recover(hooked), ASX_E_INVALID_TRANSITION);
    told(hooked, ASX_E_INVALID_TRANSITION, "asx_runtime_recover", "none", "none");
    OK(asx_runtime_destroy(hooked));
}

/* The field that a creation refuses. */
static void refused(const asx_runtime_config *config, const char *field)
{
    asx_runtime *rt = NULL;
    asx_status status;
    memset(&error, 0, sizeof error);
    error.struct_size = (uint32_t)sizeof error;
    status = asx_runtime_config_check(config, &error);
    ANSWERS(asx_runtime_create(config, &rt), status);
    ANSWERS(asx_runtime_config_check(config, NULL), status);
    if (status == ASX_OK) {
        EQUAL(error.status, 0);
        EQUAL(error.function == NULL, 1);
        OK(asx_runtime_destroy(rt));
        is("the field", NULL, field);
        return;
    }
    EQUAL(error.status, status);
    is("the function", error.function, "asx_runtime_create");
    is("the argument", error.argument, "config");
    is("the field", error.field, field);
}

static void configurations_are_checked(void)
{
    static unsigned char memory[1 << 16];
    asx_runtime_config config;
    int32_t profile;
    for (profile = ASX_PROFILE_CORE; profile <= ASX_PROFILE_AUTOMOTIVE; ++profile) {
        config = config_of(profile);
        refused(&config, "none");
    }
#define REFUSED(change, field)                                                                     \
    config = config_of(ASX_PROFILE_EMBEDDED);                                                      \
    config.change;                                                                                 \
    refused(&config, field)
    REFUSED(max_regions = 0, "max_regions");
    REFUSED(max_steps = 0, "max_steps");
    REFUSED(flags |= 1u << 31, "flags");
    REFUSED(flags |= ASX_FLAG_SEED_FROM_ENTROPY, "entropy");
    REFUSED(tie_break = 9, "tie_break");
    REFUSED(trace_full = -1, "trace_full");
    REFUSED(profile = 9, "profile");
    REFUSED(struct_size = 13, "struct_size");
    REFUSED(pool_memory = memory, "pool_bytes");
    REFUSED(pool_bytes = 16, "pool_bytes");
    REFUSED(flags &= ~ASX_FLAG_POOL, "flags");
    REFUSED(max_tasks = ASX_NONE, "max_tasks");
    /* A strict pool must be large enough for the limits. */
    config = config_of(ASX_PROFILE_EMBEDDED);
    OK(asx_runtime_config_pool_size(&config, &config.pool_bytes));
    refused(&config, "none");
    --config.pool_bytes;
    refused(&config, "pool_bytes");
    EQUAL(error.status, ASX_E_RESOURCE_EXHAUSTED);
    config.flags &= ~ASX_FLAG_STRICT;
    refused(&config, "none");
    config.pool_bytes = 16;
    refused(&config, "pool_bytes");
    config.pool_bytes = sizeof memory / 2;
    config.pool_memory = memory + 1;
    refused(&config, "pool_memory");
    refused(NULL, "none");
}

int main(void)
{
    fields_are_named();
    texts_name_the_cause();
    the_last_failure_stays();
    it_can_be_asked_in_callbacks();
    configurations_are_checked();
    puts("errors: ok");
    return 0;
}
