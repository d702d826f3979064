/* ---- Conveniences. ---- */

/* Options with nothing special. */
#define ASX_REGION_OPTIONS_INIT                                                                    \
    { (uint32_t)sizeof(asx_region_options), ASX_POLICY_COLLECT_ALL, ASX_NONE,                      \
      { ASX_NONE, ASX_NONE, ASX_NONE }, 0, 0 }
#define ASX_TASK_OPTIONS_INIT                                                                      \
    { (uint32_t)sizeof(asx_task_options), ASX_PRIORITY_DEFAULT,                                    \
      { ASX_NONE, ASX_NONE, ASX_NONE }, ASX_NONE, ASX_TASK_DEFAULT_WATCHDOG, 0, ASX_NONE }

/* So many nanoseconds from now. */
static inline asx_when asx_after(uint64_t ns)
{
    asx_when when;
    when.ns = ns;
    when.mode = ASX_WHEN_AFTER;
    when.reserved = 0;
    return when;
}

/* At an instant of the runtime's clock. */
static inline asx_when asx_at(uint64_t ns)
{
    asx_when when = asx_after(ns);
    when.mode = ASX_WHEN_AT;
    return when;
}

/* What is in the bits of a handle: its type, ASX_TAG_. */
static inline uint32_t asx_handle_tag(uint64_t bits)
{
    return (uint32_t)(bits >> 48);
}

/* The bit of a state or phase in a mask. */
#define ASX_MASK(state) (1u << (state))

/* The state in which the handle was made: one bit, ASX_MASK(ASX_TASK_STATE_..) and so on. */
static inline uint32_t asx_handle_mask(uint64_t bits)
{
    return (uint32_t)(bits >> 32) & 0xFFFFu;
}

/* Whether that state is among these. What it says may be old: the call itself knows better. */
static inline int asx_handle_allows(uint64_t bits, uint32_t masks)
{
    return (asx_handle_mask(bits) & masks) != 0;
}

/* Whether two handles name the same thing: the state they carry does not count. */
static inline int asx_same_task(asx_task one, asx_task other)
{
    return (uint32_t)one.bits == (uint32_t)other.bits && one.generation == other.generation;
}
static inline int asx_same_region(asx_region one, asx_region other)
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
 * Calls a function that takes more than the runtime and says where, for ghost reports:
 * ASX_CALL(asx_task_wake, rt, task). `rt` is evaluated twice.
 */
#define ASX_CALL(function, rt, ...)                                                                \
    (asx_set_location((rt), __FILE__, __LINE__), function((rt), __VA_ARGS__))

#ifdef __cplusplus
}
#endif

#endif
