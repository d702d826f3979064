/* ---- Helpers, compiled into the caller. ---- */

/* Default options. */
#define ASX_REGION_OPTIONS_INIT                                                                    \
    { (uint32_t)sizeof(asx_region_options), ASX_POLICY_COLLECT_ALL, ASX_NONE,                      \
      { ASX_NONE, ASX_NONE, ASX_NONE }, 0, 0 }
#define ASX_TASK_OPTIONS_INIT                                                                      \
    { (uint32_t)sizeof(asx_task_options), ASX_PRIORITY_DEFAULT,                                    \
      { ASX_NONE, ASX_NONE, ASX_NONE }, ASX_NONE, ASX_TASK_DEFAULT_WATCHDOG, 0, ASX_NONE }

#define ASX_TIMER_WHEEL_CONFIG_INIT                                                                \
    { (uint32_t)sizeof(asx_timer_wheel_config), 0, 0, ASX_NONE, UINT64_C(86400000000000),          \
      UINT64_C(604800000000000), 0, 0 }

/* The context of a task. */
static inline asx_cx asx_cx_of(asx_runtime *rt, asx_task_id task)
{
    asx_cx cx;
    cx.rt = rt;
    cx.task = task;
    return cx;
}

/* A waker that wakes the context's task, by asx_external_wake. */
static inline asx_waker asx_cx_waker(const asx_cx *cx)
{
    asx_waker waker;
    waker.wake = asx_wake_task;
    waker.data = cx->rt;
    waker.task = cx->task;
    return waker;
}

/* Calls a waker. */
static inline void asx_waker_wake(asx_waker waker)
{
    if (waker.wake != NULL)
        waker.wake(waker.data, waker.task);
}

/* The functions of a virtual clock. */
static inline asx_time asx_clock_virtual_now(void *state)
{
    return *(const asx_time *)state;
}
static inline void asx_clock_virtual_wait_until(void *state, asx_time until)
{
    asx_time *now = (asx_time *)state;
    if (until != ASX_NONE && until > *now)
        *now = until;
}

/* A virtual clock: its time is `*now`, which the program moves. Waiting moves it at once. */
static inline asx_clock asx_clock_virtual(asx_time *now)
{
    asx_clock clock;
    clock.now = asx_clock_virtual_now;
    clock.wait_until = asx_clock_virtual_wait_until;
    clock.state = now;
    return clock;
}

/* A time that many nanoseconds from now. */
static inline asx_when asx_after(asx_time ns)
{
    asx_when when;
    when.ns = ns;
    when.mode = ASX_WHEN_AFTER;
    when.reserved = 0;
    return when;
}

/* An instant of the runtime's clock. */
static inline asx_when asx_at(asx_time ns)
{
    asx_when when = asx_after(ns);
    when.mode = ASX_WHEN_AT;
    return when;
}

/* The type in the bits of a handle: ASX_TAG_. */
static inline uint32_t asx_handle_tag(asx_id bits)
{
    return (uint32_t)(bits >> 48);
}

/* The bit of a state or phase in a mask. */
#define ASX_MASK(state) (1u << (state))

/* The state in which the handle was made: one bit, ASX_MASK(ASX_TASK_RUNNING) and so on. */
static inline uint32_t asx_handle_mask(asx_id bits)
{
    return (uint32_t)(bits >> 32) & 0xFFFFu;
}

/* Whether that state is among these. It is a snapshot; calls check the current state. */
static inline int asx_handle_allows(asx_id bits, uint32_t masks)
{
    return (asx_handle_mask(bits) & masks) != 0;
}

/* Whether two handles name the same object; their states are not compared. */
static inline int asx_same_task(asx_task_id one, asx_task_id other)
{
    return (uint32_t)one.bits == (uint32_t)other.bits && one.generation == other.generation;
}
static inline int asx_same_region(asx_region_id one, asx_region_id other)
{
    return (uint32_t)one.bits == (uint32_t)other.bits && one.generation == other.generation;
}

/* A body without a drop callback. */
static inline asx_body asx_poll_with(asx_poll_fn poll, void *ctx)
{
    asx_body body;
    body.poll = poll;
    body.ctx = ctx;
    body.drop = NULL;
    return body;
}

/*
 * Makes a call and records the source position for ghost reports and leak reports:
 * ASX_CALL(rt, asx_task_wake(rt, task)).
 */
#define ASX_CALL(rt, call) (asx_set_location((rt), __FILE__, __LINE__), (call))

#ifdef __cplusplus
}
#endif

#endif
