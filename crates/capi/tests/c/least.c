/* As little as a program can do with the library: two tasks and a channel. It is linked by `cargo
   xtask capi sizes`, once for each profile, to see how much of the library it takes. */
#include <asx.h>
#include <inttypes.h>
#include <stdio.h>

#ifndef PROFILE
#define PROFILE ASX_PROFILE_EMBEDDED
#endif

static asx_channel_sender sender;
static asx_channel_receiver receiver;
static uint64_t sum;

static int32_t sends(asx_cx *cx, void *ctx)
{
    uint64_t *left = ctx;
    while (*left > 0) {
        asx_send_permit permit;
        asx_status status = asx_channel_reserve(&sender, cx, &permit);
        if (status == ASX_E_WOULD_BLOCK)
            return ASX_POLL_PENDING;
        if (status != ASX_OK || asx_send_permit_send(&permit, left) != ASX_OK)
            return ASX_POLL_ERROR;
        --*left;
    }
    return asx_channel_sender_close(&sender) == ASX_OK ? ASX_POLL_READY : ASX_POLL_ERROR;
}

static int32_t receives(asx_cx *cx, void *ctx)
{
    uint64_t message;
    asx_status status;
    (void)ctx;
    while ((status = asx_channel_recv(&receiver, cx, &message)) == ASX_OK)
        sum += message;
    return status == ASX_E_WOULD_BLOCK ? ASX_POLL_PENDING : ASX_POLL_READY;
}

int main(void)
{
    asx_runtime_config config;
    asx_runtime *rt;
    asx_region_id root;
    asx_task_id task;
    uint64_t left = 20, pool = 0;

    if (asx_runtime_config_init(&config, sizeof config, PROFILE) != ASX_OK
        || asx_runtime_create(&config, &rt) != ASX_OK || asx_region_root(rt, &root) != ASX_OK
        || asx_channel_create(rt, &root, 4, sizeof left, &sender, &receiver) != ASX_OK
        || asx_task_spawn(rt, root, asx_poll_with(sends, &left), NULL, &task) != ASX_OK
        || asx_task_spawn(rt, root, asx_poll_with(receives, NULL), NULL, &task) != ASX_OK
        || asx_run_until_idle(rt, 0, NULL) != ASX_OK || sum != 210
        || asx_runtime_destroy(rt) != ASX_OK)
        return 1;
    if (config.flags & ASX_FLAG_POOL)
        asx_runtime_config_pool_size(&config, &pool);
    printf("%" PRIu64 "\n", pool);
    return 0;
}
