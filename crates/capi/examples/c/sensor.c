/*
 * A sensor loop on a small machine: one task samples every 10 ms, one keeps an average, all memory
 * is reserved at the start. The time is simulated, so that every run prints the same.
 */
#include <asx.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

struct app {
    asx_channel_sender samples;
    asx_channel_receiver readings;
    asx_timer_handle timer;
    int sleeping;
    uint32_t reading;
    uint64_t sum, count;
};

/* The next reading; evicts the oldest when the other task is late: old readings are worth least. */
static int32_t sample(asx_cx *cx, void *ctx)
{
    asx_runtime *rt = cx->rt;
    asx_task_id task = cx->task;
    struct app *app = (struct app *)ctx;
    for (;;) {
        asx_status status;
        if (!app->sleeping) {
            status = asx_task_sleep(rt, task, asx_after(10 * MS), &app->timer);
            if (status != ASX_OK)
                return ASX_POLL_CANCELLED;
            app->sleeping = 1;
        }
        status = asx_task_sleep_over(rt, task, app->timer);
        if (status == ASX_E_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status != ASX_OK)
            return ASX_POLL_CANCELLED;
        app->sleeping = 0;
        app->reading = (app->reading * 75 + 74) % 65537;
        asx_channel_evict(&app->samples, &app->reading, NULL, NULL);
    }
}

static int32_t average(asx_cx *cx, void *ctx)
{
    struct app *app = (struct app *)ctx;
    for (;;) {
        uint32_t reading;
        asx_status status = asx_channel_recv(&app->readings, cx, &reading);
        if (status == ASX_E_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status != ASX_OK)
            return ASX_POLL_CANCELLED;
        app->sum += reading;
        app->count += 1;
    }
}

int main(void)
{
    struct app app;
    asx_runtime_config config;
    asx_runtime *rt = NULL;
    asx_region_id root;
    asx_task_id task;
    asx_time now = 0;
    asx_clock clock = asx_clock_virtual(&now);
    asx_progress progress;

    memset(&app, 0, sizeof app);
    app.reading = 1;
    if (asx_runtime_config_init(&config, sizeof config, ASX_PROFILE_EMBEDDED) != ASX_OK)
        return 1;
    config.clock = clock;
    if (asx_runtime_create(&config, &rt) != ASX_OK)
        return 1;
    asx_region_root(rt, &root);
    asx_channel_create(rt, &root, 4, sizeof app.reading, &app.samples, &app.readings);
    asx_task_spawn(rt, root, asx_poll_with(sample, &app), NULL, &task);
    asx_task_spawn(rt, root, asx_poll_with(average, &app), NULL, &task);

    /* The machine's main loop: step, then sleep until the next deadline. */
    progress.struct_size = (uint32_t)sizeof progress;
    while (now < 1000 * MS) {
        if (asx_step(rt, ASX_NOW, 16, &progress) != ASX_OK)
            return 1;
        if (progress.idle)
            clock.wait_until(clock.state, progress.next_deadline);
    }
    asx_shutdown(rt, 0, ASX_NONE);
    asx_run_until_idle(rt, now, NULL);
    printf("%llu readings, average %llu\n", (unsigned long long)app.count,
        (unsigned long long)(app.sum / app.count));
    if (asx_quiescent(rt, NULL) != ASX_OK)
        return 1;
    return asx_runtime_destroy(rt) == ASX_OK ? 0 : 1;
}
