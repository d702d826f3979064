/*
 * A sensor loop on a small machine: one task samples every 10 ms, one keeps an average, all memory
 * is reserved at the start. Time here is made up, so that every run prints the same.
 */
#include <asx.h>
#include <stdio.h>

#define MS UINT64_C(1000000)

struct app {
    asx_channel samples;
    asx_timer timer;
    int sleeping;
    uint32_t reading;
    uint64_t sum, count;
};

/* The next reading; evicts the oldest when the other task is late: old readings are worth least. */
static int32_t sample(asx_runtime *rt, asx_task task, void *ctx)
{
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
        if (status == ASX_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status != ASX_OK)
            return ASX_POLL_CANCELLED;
        app->sleeping = 0;
        app->reading = (app->reading * 75 + 74) % 65537;
        asx_channel_evict(rt, app->samples, &app->reading, sizeof app->reading, NULL, 0, NULL);
    }
}

static int32_t average(asx_runtime *rt, asx_task task, void *ctx)
{
    struct app *app = (struct app *)ctx;
    for (;;) {
        uint32_t reading;
        asx_status status = asx_channel_recv(rt, app->samples, task, &reading, sizeof reading);
        if (status == ASX_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status != ASX_OK)
            return ASX_POLL_CANCELLED;
        app->sum += reading;
        app->count += 1;
    }
}

int main(void)
{
    struct app app = { { 0, 0 }, { 0, 0 }, 0, 1, 0, 0 };
    asx_config config;
    asx_runtime *rt = NULL;
    asx_region root;
    asx_task task;
    uint64_t now;

    if (asx_config_init(&config, sizeof config, ASX_PROFILE_EMBEDDED) != ASX_OK
        || asx_runtime_create(&config, &rt) != ASX_OK)
        return 1;
    asx_region_root(rt, &root);
    asx_channel_create(rt, &root, 4, sizeof app.reading, &app.samples);
    asx_task_spawn(rt, root, asx_poll_with(sample, &app), NULL, &task);
    asx_task_spawn(rt, root, asx_poll_with(average, &app), NULL, &task);

    /* The machine's main loop: step, then sleep until the next deadline. */
    for (now = 0; now < 1000 * MS;) {
        asx_progress progress;
        progress.struct_size = (uint32_t)sizeof progress;
        if (asx_step(rt, now, 16, &progress) != ASX_OK)
            return 1;
        now = progress.idle ? progress.next_deadline : now;
    }
    asx_shutdown(rt, 0, ASX_NONE);
    asx_run_until_idle(rt, now, NULL);
    printf("%llu readings, average %llu\n", (unsigned long long)app.count,
        (unsigned long long)(app.sum / app.count));
    if (asx_quiescent(rt, NULL) != ASX_OK)
        return 1;
    return asx_runtime_destroy(rt) == ASX_OK ? 0 : 1;
}
