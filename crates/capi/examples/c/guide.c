/*
 * The pieces of code in docs/C.md, in a program that runs: a channel between two tasks, a main loop
 * with a real clock, an error report, a timer wheel, and a comparison with an earlier run.
 */
#define _POSIX_C_SOURCE 199309L
#include <asx.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)

/* The system's monotonic clock as a table of functions. */
static asx_time system_now(void *state)
{
    struct timespec now;
    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (asx_time)now.tv_sec * 1000 * MS + (asx_time)now.tv_nsec;
}

static void system_wait_until(void *state, asx_time until)
{
    asx_time now = system_now(state);
    struct timespec span;
    if (until == ASX_NONE || until <= now)
        return;
    span.tv_sec = (time_t)((until - now) / (1000 * MS));
    span.tv_nsec = (long)((until - now) % (1000 * MS));
    nanosleep(&span, NULL);
}

struct app {
    asx_channel_sender sender;
    asx_channel_receiver receiver;
    asx_timer_handle timer;
    int sleeping;
    int32_t sum;
};

static int32_t produce(asx_cx *cx, void *ctx)
{
    struct app *app = (struct app *)ctx;
    int32_t message = 42;
    asx_send_permit permit;
    asx_status status;
    if (!app->sleeping) {
        if (asx_task_sleep(cx->rt, cx->task, asx_after(2 * MS), &app->timer) != ASX_OK)
            return ASX_POLL_CANCELLED;
        app->sleeping = 1;
    }
    status = asx_task_sleep_over(cx->rt, cx->task, app->timer);
    if (status == ASX_E_WOULD_BLOCK) return ASX_POLL_PENDING;
    if (status == ASX_E_CANCELLED)   return ASX_POLL_CANCELLED;
    status = asx_channel_reserve(&app->sender, cx, &permit);
    if (status == ASX_E_WOULD_BLOCK) return ASX_POLL_PENDING;
    if (status == ASX_E_CANCELLED)   return ASX_POLL_CANCELLED;
    asx_send_permit_send(&permit, &message);
    return ASX_POLL_READY;
}

static int32_t consume(asx_cx *cx, void *ctx)
{
    struct app *app = (struct app *)ctx;
    int32_t message;
    asx_status status;
    status = asx_channel_recv(&app->receiver, cx, &message);
    if (status == ASX_E_WOULD_BLOCK) return ASX_POLL_PENDING;
    if (status == ASX_E_CANCELLED)   return ASX_POLL_CANCELLED;
    app->sum += message;
    return ASX_POLL_READY;
}

/* Makes a run with this clock, and reads the recorded events. */
static int run(asx_clock clock, struct app *app, const asx_event *recorded, asx_event *events,
    size_t room, size_t *count)
{
    asx_runtime_config config;
    asx_runtime *rt;
    asx_region_id root;
    asx_task_id task;
    asx_progress progress;

    memset(app, 0, sizeof *app);
    if (asx_runtime_config_init(&config, sizeof config, ASX_PROFILE_CORE) != ASX_OK)
        return 1;
    config.clock = clock;
    if (asx_runtime_create(&config, &rt) != ASX_OK)
        return 1;
    /* A runtime begins at time 0. */
    asx_advance(rt, clock.now(clock.state));
    asx_region_root(rt, &root);
    asx_channel_create(rt, &root, 1, sizeof(int32_t), &app->sender, &app->receiver);
    asx_task_spawn(rt, root, asx_poll_with(produce, app), NULL, &task);
    asx_task_spawn(rt, root, asx_poll_with(consume, app), NULL, &task);

    asx_shutdown(rt, 10000 * MS, ASX_NONE);
    progress.struct_size = (uint32_t)sizeof progress;
    while (asx_quiescent(rt, NULL) != ASX_OK) {
        if (asx_step(rt, ASX_NOW, 64, &progress) != ASX_OK)
            break;
        if (progress.idle)
            clock.wait_until(clock.state, progress.next_deadline);
    }

    if (recorded != NULL) {
        asx_replay_info difference;
        uint64_t next;
        difference.struct_size = (uint32_t)sizeof difference;
        if (asx_replay_compare(rt, recorded, *count, 0, 1, &next, &difference)
            == ASX_E_REPLAY_MISMATCH)
            printf("event %llu differs\n", (unsigned long long)next);
    } else {
        asx_journal_read(rt, 0, events, room, count);
    }
    return asx_runtime_destroy(rt) == ASX_OK ? 0 : 1;
}

/* The cause of a refused call. */
static void refused(asx_runtime *rt, asx_region_id region, asx_body body)
{
    asx_task_options options = ASX_TASK_OPTIONS_INIT;
    asx_task_id task;
    asx_error_info error;
    options.priority = 1000;
    error.struct_size = (uint32_t)sizeof error;
    if (asx_task_spawn(rt, region, body, &options, &task) != ASX_OK
        && asx_last_error(rt, &error) == ASX_OK)
        printf("%s: %s.%s: %s\n", error.function, error.argument ? error.argument : "",
            error.field ? error.field : "", error.text);
}

static void rings(void *data, asx_task_id task)
{
    (void)task;
    puts((const char *)data);
}

/* A timer wheel needs no runtime. */
static int wheel(void)
{
    asx_timer_wheel *wheel;
    asx_timer_handle timer;
    asx_waker due[8];
    asx_waker waker;
    size_t i, count;
    memset(&waker, 0, sizeof waker);
    waker.wake = rings;
    waker.data = (void *)"ring";
    if (asx_timer_wheel_create(NULL, &wheel) != ASX_OK)
        return 1;
    if (asx_timer_register(wheel, 10 * MS, waker, &timer) != ASX_OK)
        return 1;
    count = asx_timer_collect_expired(wheel, 10 * MS, due, 8);
    for (i = 0; i < count; ++i)
        asx_waker_wake(due[i]);
    return asx_timer_wheel_destroy(wheel) == ASX_OK ? 0 : 1;
}

int main(void)
{
    static asx_event events[256];
    size_t count = 0;
    struct app app;
    asx_runtime_config config;
    asx_runtime *rt;
    asx_region_id root;
    asx_time now = 0;
    asx_clock clock;

    clock.now = system_now;
    clock.wait_until = system_wait_until;
    clock.state = NULL;
    if (run(clock, &app, NULL, events, 256, &count) != 0 || app.sum != 42)
        return 1;
    /* Twice with a virtual clock: the same run. */
    if (run(asx_clock_virtual(&now), &app, NULL, events, 256, &count) != 0)
        return 1;
    now = 0;
    if (run(asx_clock_virtual(&now), &app, events, NULL, 0, &count) != 0)
        return 1;

    if (asx_runtime_config_init(&config, sizeof config, ASX_PROFILE_CORE) != ASX_OK
        || asx_runtime_create(&config, &rt) != ASX_OK)
        return 1;
    asx_region_root(rt, &root);
    refused(rt, root, asx_poll_with(consume, &app));
    return wheel() != 0 || asx_runtime_destroy(rt) != ASX_OK;
}
