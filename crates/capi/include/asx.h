/*
 * asx: structured concurrency for C. Explicit, bounded, deterministic.
 *
 * A program creates a runtime from a configuration and steps it. The library has no threads. Tasks
 * are callbacks, polled when they have been woken. Every task lives in a region; a region closes
 * when everything inside has ended. Cancellation is cooperative: a task observes it at its next
 * checked call and cleans up. docs/C.md is the guide.
 *
 * Rules for every function, unless its comment says otherwise:
 *  - It returns an asx_status; ASX_OK is 0. A refused call has no effect.
 *  - `rt` is NULL (ASX_E_INVALID_ARGUMENT) or a living runtime. A context, sender, receiver or
 *    permit names its runtime; all arguments of a call must be of the same one.
 *  - A runtime is called by its owner: the thread that created it, or was given it by
 *    asx_runtime_transfer. Other threads get ASX_E_AFFINITY_VIOLATION. Only asx_external_wake and
 *    asx_thread_number may be called from any thread.
 *  - A handle may have any value. A wrong type, or a state the object has never been in, is
 *    ASX_E_INVALID_ARGUMENT; a handle of an object that is gone or never existed is
 *    ASX_E_STALE_HANDLE. A handle is a pair of numbers of one runtime, and may name another object
 *    in another runtime.
 *  - If several things are wrong, the first in this order is reported: arguments and types of
 *    handles, thread, place of the call, an exhausted pool, staleness, states, limits.
 *  - It may be called from inside a poll, except asx_step, asx_run_until_idle and
 *    asx_runtime_destroy. From hooks, drop callbacks and the functions of asx_set_allocator only
 *    asx_external_wake may be called. Both are ASX_E_REENTRANT, and concern the same runtime:
 *    another one may be used everywhere.
 *  - Callbacks and hooks return. Leaving one by longjmp or an exception is forbidden; a program that
 *    has done so calls asx_runtime_recover before anything else.
 *  - A pointer to a struct that begins with struct_size must be valid for that many bytes.
 *  - If the allocator has no more memory, the call that would need it returns
 *    ASX_E_RESOURCE_EXHAUSTED and has no effect. The process is never ended for lack of memory.
 *  - ASX_E_INTERNAL reports a bug in asx. Every later call returns it too.
 *
 * Comments have these sections where there is something to say:
 *  - Parameters: the requirements for arguments, beside the rules above.
 *  - Thread: the threads that may call; without this section only the owner.
 *  - Ownership: the objects and memory that change hands; without it none do.
 *  - Returns: every status that the function returns, with its condition if the name does not tell.
 *
 * This file is generated from crates/capi/src. Do not edit it.
 */
#ifndef ASX_H
#define ASX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A runtime. */
typedef struct asx_runtime asx_runtime;

/* A timer wheel that needs no runtime. */
typedef struct asx_timer_wheel asx_timer_wheel;

/* Statuses. */
/* The operation succeeded. */
#define ASX_OK 0
/* The operation would have to wait; the caller is registered. */
#define ASX_E_WOULD_BLOCK 100
/* The channel holds no message now. */
#define ASX_E_EMPTY 101
/* The channel has no free slot, or others are waiting for one. */
#define ASX_E_FULL 102
/* The other side is gone. */
#define ASX_E_DISCONNECTED 103
/* The task was asked to stop and has now seen it. */
#define ASX_E_CANCELLED 104
/* An argument is outside its range. */
#define ASX_E_INVALID_ARGUMENT 200
/* The state machine has no such step; nothing changed. */
#define ASX_E_INVALID_TRANSITION 201
/* The handle names something that is gone or was never there. */
#define ASX_E_STALE_HANDLE 202
/* A configured limit is reached; nothing changed. */
#define ASX_E_RESOURCE_EXHAUSTED 203
/* The task's deadline, polls or cost allowance is used up. */
#define ASX_E_BUDGET_EXHAUSTED 204
/* The runtime was called from inside itself where it must not be. */
#define ASX_E_REENTRANT 205
/* A law was broken inside asx: please report it. */
#define ASX_E_INTERNAL 206
/* The region is closing and admits nothing new. */
#define ASX_E_REGION_NOT_OPEN 300
/* The region is closed; its storage is gone. */
#define ASX_E_REGION_CLOSED 301
/* The open region's admission gate refuses new work. */
#define ASX_E_ADMISSION_CLOSED 302
/* Tasks or child regions still live in the region. */
#define ASX_E_INCOMPLETE_CHILDREN 303
/* The obligation or permit was already committed or aborted. */
#define ASX_E_OBLIGATION_ALREADY_RESOLVED 400
/* The obligation was never resolved and is recorded as leaked. */
#define ASX_E_OBLIGATION_LEAKED 401
/* Obligations are still outstanding in the region. */
#define ASX_E_UNRESOLVED_OBLIGATIONS 402
/* The deadline is further away than timers may be. */
#define ASX_E_TIMER_DURATION_EXCEEDED 500
/* Not quiescent: tasks are not completed. */
#define ASX_E_TASKS_STILL_ACTIVE 600
/* Not quiescent: obligations are still reserved. */
#define ASX_E_OBLIGATIONS_UNRESOLVED 601
/* Not quiescent: regions are not closed. */
#define ASX_E_REGIONS_NOT_CLOSED 602
/* Not quiescent: timers are armed. */
#define ASX_E_TIMERS_PENDING 603
/* Not quiescent: a channel holds messages or permits. */
#define ASX_E_CHANNEL_NOT_DRAINED 604
/* The witnesses are about different tasks. */
#define ASX_E_WITNESS_TASK_MISMATCH 700
/* The witnesses are about different regions. */
#define ASX_E_WITNESS_REGION_MISMATCH 701
/* The witnesses are about different cancel epochs. */
#define ASX_E_WITNESS_EPOCH_MISMATCH 702
/* The cancel phase went backwards. */
#define ASX_E_WITNESS_PHASE_REGRESSION 703
/* The cancel reason became less severe. */
#define ASX_E_WITNESS_REASON_WEAKENED 704
/* The call came from a thread that may not make it. */
#define ASX_E_AFFINITY_VIOLATION 800
/* The host capability was not granted. */
#define ASX_E_CAPABILITY_DENIED 801
/* Two runs that must be equal were not. */
#define ASX_E_DETERMINISM_VIOLATION 802
/* The replayed run took another path than the recorded one. */
#define ASX_E_REPLAY_MISMATCH 803
/* The trace cannot be read. */
#define ASX_E_TRACE_MALFORMED 804
/* The trace ends early. */
#define ASX_E_TRACE_TRUNCATED 805
/* The trace has a version this build does not know. */
#define ASX_E_TRACE_VERSION 806

/* The states of a region. */
#define ASX_REGION_OPEN 0
#define ASX_REGION_CLOSING 1
#define ASX_REGION_DRAINING 2
#define ASX_REGION_FINALIZING 3
#define ASX_REGION_CLOSED 4

/* The states of a task. */
#define ASX_TASK_CREATED 0
#define ASX_TASK_RUNNING 1
#define ASX_TASK_CANCEL_REQUESTED 2
#define ASX_TASK_CANCELLING 3
#define ASX_TASK_FINALIZING 4
#define ASX_TASK_COMPLETED 5

/* The states of an obligation. */
#define ASX_OBLIGATION_RESERVED 0
#define ASX_OBLIGATION_COMMITTED 1
#define ASX_OBLIGATION_ABORTED 2
#define ASX_OBLIGATION_LEAKED 3

/* The outcomes of tasks and regions, by severity. */
#define ASX_OUTCOME_OK 0
#define ASX_OUTCOME_ERR 1
#define ASX_OUTCOME_CANCELLED 2
#define ASX_OUTCOME_PANICKED 3

/* The kinds of cancel: why a task or region is cancelled. */
#define ASX_CANCEL_USER 0
#define ASX_CANCEL_TIMEOUT 1
#define ASX_CANCEL_DEADLINE 2
#define ASX_CANCEL_POLL_QUOTA 3
#define ASX_CANCEL_COST_BUDGET 4
#define ASX_CANCEL_FAIL_FAST 5
#define ASX_CANCEL_RACE_LOST 6
#define ASX_CANCEL_LINKED_EXIT 7
#define ASX_CANCEL_PARENT 8
#define ASX_CANCEL_RESOURCE 9
#define ASX_CANCEL_SHUTDOWN 10

/* The phases of a cancel. */
#define ASX_CANCEL_REQUESTED 0
#define ASX_CANCEL_CANCELLING 1
#define ASX_CANCEL_FINALIZING 2
#define ASX_CANCEL_COMPLETED 3

/* The lanes of the run queue. */
#define ASX_LANE_CANCEL 0
#define ASX_LANE_TIMED 1
#define ASX_LANE_READY 2

/* The result of a call: ASX_OK, which is 0, or one of the ASX_E_ constants. */
typedef int32_t asx_status;

/* A time in nanoseconds: an instant of a clock, or a span. */
typedef uint64_t asx_time;

/* The word of a handle, opaque to programs: its type (16 bits), the state in which it was made
 * (16 bits) and a slot (32 bits). See asx_handle_tag and asx_handle_mask.
 */
typedef uint64_t asx_id;

/* One of the cancel kinds, ASX_CANCEL_USER to ASX_CANCEL_SHUTDOWN. */
typedef int32_t asx_cancel_kind;

/* One of the cancel phases, ASX_CANCEL_REQUESTED to ASX_CANCEL_COMPLETED; -1 for none. */
typedef int32_t asx_cancel_phase;

/* One of the channel states, ASX_CHANNEL_OPEN to ASX_CHANNEL_FULLY_CLOSED. */
typedef int32_t asx_channel_state;

/* Names a region. A forged or stale one is refused. */
typedef struct asx_region_id {
    /* Type tag, state snapshot, slot. */
    asx_id bits;
    /* Which of the slot's tenants. */
    uint64_t generation;
} asx_region_id;

/* Names a task. */
typedef struct asx_task_id {
    /* Type tag, state snapshot, slot. */
    asx_id bits;
    /* Which of the slot's tenants. */
    uint64_t generation;
} asx_task_id;

/* Names an obligation. */
typedef struct asx_obligation_id {
    /* Type tag, state snapshot, slot. */
    asx_id bits;
    /* Which of the slot's tenants. */
    uint64_t generation;
} asx_obligation_id;

/* Names a channel. */
typedef struct asx_channel_id {
    /* Type tag, state snapshot, slot. */
    asx_id bits;
    /* Which of the slot's tenants. */
    uint64_t generation;
} asx_channel_id;

/* Names a witness of a cancel. */
typedef struct asx_witness_id {
    /* Type tag, snapshot of the phase, slot. */
    asx_id bits;
    /* Which of the slot's tenants. */
    uint64_t generation;
} asx_witness_id;

/* A runtime has changed hands. */
typedef struct asx_transfer {
    /* Set by the caller: sizeof(asx_transfer). */
    uint32_t struct_size;
    /* Zero. */
    uint32_t reserved;
    /* The thread that gave it away. */
    uint64_t from;
    /* The thread that owns it now. */
    uint64_t to;
    /* How often it has changed hands, this time included. */
    uint64_t epoch;
} asx_transfer;

/* The type of a handle is in the upper 16 bits of `bits`, the state in which it was made in the
 * next 16: see asx_handle_tag and asx_handle_mask. Region.
 */
#define ASX_TAG_REGION 1u

/* Task. */
#define ASX_TAG_TASK 2u

/* Obligation. */
#define ASX_TAG_OBLIGATION 3u

/* Witness of a cancel. */
#define ASX_TAG_CANCEL_WITNESS 4u

/* Timer: in reports of misuse only, as a timer's handle has no `bits`. */
#define ASX_TAG_TIMER 5u

/* Channel. */
#define ASX_TAG_CHANNEL 6u

/* Permit: without a state. */
#define ASX_TAG_PERMIT 7u

/* Names a timer. */
typedef struct asx_timer_handle {
    /* Its slot; reused, but never while the timer lives. */
    uint64_t id;
    /* Which registration. */
    uint64_t generation;
} asx_timer_handle;

/* The context of a task: the runtime it lives in, and the task. A poll function gets a pointer to
 * one, which is valid until it returns; asx_cx_of makes one for any task. Calls on behalf of a
 * task take it, and refuse one of another runtime or of a task that is gone.
 */
typedef struct asx_cx {
    /* The runtime. */
    asx_runtime *rt;
    /* The task. */
    asx_task_id task;
} asx_cx;

/* The sending side of a channel. A plain value: copies are the same sender, and
 * asx_channel_sender_clone adds one.
 */
typedef struct asx_channel_sender {
    /* The runtime the channel is in. */
    asx_runtime *rt;
    /* The channel. */
    asx_channel_id channel;
} asx_channel_sender;

/* The receiving side of a channel. A plain value: copies are the same receiver. */
typedef struct asx_channel_receiver {
    /* The runtime the channel is in. */
    asx_runtime *rt;
    /* The channel. */
    asx_channel_id channel;
} asx_channel_receiver;

/* A permit: one reserved slot of a channel, resolved exactly once. A plain value: a copy is the
 * same permit, and using it after the other was resolved is ASX_E_OBLIGATION_ALREADY_RESOLVED.
 */
typedef struct asx_send_permit {
    /* The runtime the channel is in. */
    asx_runtime *rt;
    /* Type tag, slot. */
    asx_id bits;
    /* Which of the slot's tenants. */
    uint64_t generation;
} asx_send_permit;

/* The function of a waker: gets what the waker was made with. */
typedef void (*asx_wake_fn)(void *data, asx_task_id task);

/* Something to be called when a timer of a wheel has expired; asx_waker_wake calls it. A zeroed
 * one does nothing. asx_cx_waker makes one that wakes a task.
 */
typedef struct asx_waker {
    /* Called by asx_waker_wake; may be NULL. */
    asx_wake_fn wake;
    /* Its first argument. */
    void *data;
    /* Its second argument. */
    asx_task_id task;
} asx_waker;

/* Returns the time in nanoseconds, which never decreases; ASX_NONE if it is not available. */
typedef asx_time (*asx_clock_now_fn)(void *state);

/* Waits until an instant, or shorter. ASX_NONE: until something happens. */
typedef void (*asx_clock_wait_fn)(void *state, asx_time until);

/* A clock: a table of functions and the pointer they get. asx_clock_virtual makes one whose time
 * is a variable of the program.
 */
typedef struct asx_clock {
    /* Called for ASX_NOW. NULL: there is no clock. */
    asx_clock_now_fn now;
    /* For the program's own loop, between steps; the library does not call it. May be NULL. */
    asx_clock_wait_fn wait_until;
    /* Handed to both. */
    void *state;
} asx_clock;

/* Polls a task: continues its work, and returns one of the ASX_POLL_ constants. Like every
 * callback it must return: leaving it by longjmp or an exception is forbidden
 * (asx_runtime_recover).
 */
typedef int32_t (*asx_poll_fn)(asx_cx *cx, void *ctx);

/* Called once with a context pointer that will not be used again. */
typedef void (*asx_drop_fn)(void *ctx);

/* The callbacks of a task, a finalizer or a cleanup entry. */
typedef struct asx_body {
    /* Called until it returns something other than ASX_POLL_PENDING. Not NULL. */
    asx_poll_fn poll;
    /* Handed to `poll` and `drop`; never looked at. */
    void *ctx;
    /* Called once when `poll` will not be called again; may be NULL. */
    asx_drop_fn drop;
} asx_body;

/* The poll waits for a wake. */
#define ASX_POLL_PENDING 0

/* The task is done. */
#define ASX_POLL_READY 1

/* The task is done, with the error set by asx_task_set_error. */
#define ASX_POLL_ERROR 2

/* The task gave up because a call answered ASX_E_CANCELLED or ASX_E_BUDGET_EXHAUSTED. */
#define ASX_POLL_CANCELLED 3

/* The task failed unexpectedly, as by a panic or an escaped exception. Unknown results count as
 * this.
 */
#define ASX_POLL_PANICKED 4

/* "None" or "never" where a time or a number may be absent, and "no limit" where a limit may. */
#define ASX_NONE UINT64_MAX

/* As `now`: ask the clock hook. */
#define ASX_NOW UINT64_MAX

/* `ns` counts from the runtime's current time. */
#define ASX_WHEN_AFTER 0

/* `ns` is an instant of the runtime's clock. */
#define ASX_WHEN_AT 1

/* When a wait ends. */
typedef struct asx_when {
    /* Nanoseconds. */
    asx_time ns;
    /* ASX_WHEN_AFTER or ASX_WHEN_AT. */
    int32_t mode;
    /* Zero. */
    uint32_t reserved;
} asx_when;

/* The limits of a task or region. The limits of its region apply as well. */
typedef struct asx_budget {
    /* The instant at which it ends; ASX_NONE for none. */
    asx_time deadline;
    /* Polls; ASX_NONE for no limit. */
    uint64_t poll_quota;
    /* Cost; ASX_NONE for no limit. */
    uint64_t cost_quota;
} asx_budget;

/* Children continue when one fails. */
#define ASX_POLICY_COLLECT_ALL 0

/* The first failure cancels the siblings. */
#define ASX_POLICY_FAIL_FAST 1

/* How a region is opened; see ASX_REGION_OPTIONS_INIT. */
typedef struct asx_region_options {
    /* sizeof(asx_region_options). */
    uint32_t struct_size;
    /* One of the ASX_POLICY_ constants. */
    int32_t policy;
    /* Live children it admits; ASX_NONE for no limit. */
    uint64_t max_children;
    /* Its budget. */
    asx_budget budget;
    /* The priority its tasks have at least: 0 to 255. */
    uint32_t priority;
    /* Zero. */
    uint32_t reserved;
} asx_region_options;

/* The task's slot is freed as soon as it is over; its handle is stale from then on. */
#define ASX_TASK_AUTO_RELEASE 1u

/* Take the configured watchdog instead of `watchdog_ns`. */
#define ASX_TASK_DEFAULT_WATCHDOG 2u

/* The default priority of a task. */
#define ASX_PRIORITY_DEFAULT 128u

/* How a task is spawned; see ASX_TASK_OPTIONS_INIT. */
typedef struct asx_task_options {
    /* sizeof(asx_task_options). */
    uint32_t struct_size;
    /* 0 to 255, higher goes first. */
    uint32_t priority;
    /* Its budget. */
    asx_budget budget;
    /* Cancelled if it is not kicked for so long; ASX_NONE for no watchdog. */
    uint64_t watchdog_ns;
    /* ASX_TASK_ flags. */
    uint32_t flags;
    /* Zero. */
    uint32_t reserved;
    /* Completed by force if it lives so long after its watchdog has cancelled it; its cleanup
     * stack has as long again. ASX_NONE: never. With ASX_TASK_DEFAULT_WATCHDOG the configured one.
     */
    uint64_t watchdog_grace_ns;
} asx_task_options;

/* A watchdog has cancelled its task. */
#define ASX_WATCHDOG_CANCELLED 0

/* A watchdog has ended its task by force. */
#define ASX_WATCHDOG_FORCED 1

/* The state of a region. */
typedef struct asx_region_info {
    /* Set by the caller: sizeof(asx_region_info). */
    uint32_t struct_size;
    /* One of the ASX_REGION_ constants. */
    int32_t state;
    /* The fold of its children's outcomes once Closed: ASX_OUTCOME_, or -1. */
    int32_t outcome;
    /* The first failure of a fail-fast region: ASX_OUTCOME_, or -1. */
    int32_t first_cause;
    /* Why it was closed: ASX_CANCEL_, or -1. */
    asx_cancel_kind kind;
    /* Links of its chain of causes. */
    uint32_t chain;
    /* Live tasks. */
    uint64_t tasks;
    /* Open child regions. */
    uint64_t children;
    /* Outstanding obligations. */
    uint64_t obligations;
    /* Finalizers not yet started. */
    uint64_t finalizers;
    /* Bytes of storage in use. */
    uint64_t storage;
} asx_region_info;

/* The state of a task. */
typedef struct asx_task_info {
    /* Set by the caller: sizeof(asx_task_info). */
    uint32_t struct_size;
    /* One of the ASX_TASK_ constants. */
    int32_t state;
    /* How it ended: ASX_OUTCOME_, or -1. */
    int32_t outcome;
    /* The status of the error it ended with, or -1. */
    int32_t error;
    /* Why it is cancelled: ASX_CANCEL_, or -1. */
    asx_cancel_kind kind;
    /* How far the cancel has come: ASX_CANCEL_REQUESTED and so on, or -1. */
    asx_cancel_phase phase;
    /* The lane it is queued in: ASX_LANE_, or -1. */
    int32_t lane;
    /* Whether it was completed by force. */
    int32_t overrun;
    /* Whether it is a finalizer. */
    int32_t finalizer;
    /* Whether its chain of causes was cut. */
    int32_t truncated;
    /* Links of its chain of causes. */
    uint32_t chain;
    /* Its priority. */
    uint32_t priority;
    /* The region it lives in. */
    asx_region_id region;
    /* Cancels so far: 0 or 1. */
    uint64_t epoch;
    /* Polls begun. */
    uint64_t polls;
    /* Polls begun since a cancel it has not seen. */
    uint64_t polls_since_request;
    /* Cleanup polls still allowed, or ASX_NONE. */
    uint64_t polls_left;
    /* Its deadline, or ASX_NONE. */
    uint64_t deadline;
    /* Polls left in its budget, or ASX_NONE. */
    uint64_t quota;
    /* Cost left in its budget, or ASX_NONE. */
    uint64_t cost;
} asx_task_info;

/* One link of a chain of causes. */
typedef struct asx_cancel_reason {
    /* Set by the caller: sizeof(asx_cancel_reason). */
    uint32_t struct_size;
    /* ASX_CANCEL_. */
    asx_cancel_kind kind;
    /* When. */
    uint64_t time;
    /* The region the request was made in. */
    asx_region_id region;
    /* The task that made it, if `has_task`. */
    asx_task_id task;
    /* Whether a task made it. */
    int32_t has_task;
    /* Whether deeper causes were cut off below this link. */
    int32_t truncated;
} asx_cancel_reason;

/* A task that waits to be polled, and its context pointer. */
typedef struct asx_task_entry {
    /* The task. */
    asx_task_id task;
    /* The context pointer that will be polled next. */
    void *ctx;
} asx_task_entry;

/* The state of a channel. */
typedef struct asx_channel_info {
    /* Set by the caller: sizeof(asx_channel_info). */
    uint32_t struct_size;
    /* One of the ASX_CHANNEL_ constants. */
    asx_channel_state state;
    /* Slots in all. */
    uint64_t capacity;
    /* Committed messages. */
    uint64_t len;
    /* Permits granted and not resolved. */
    uint64_t reserved;
    /* Senders in line. */
    uint64_t waiters;
    /* Senders. */
    uint64_t senders;
    /* Bytes of an element. */
    uint64_t element_size;
} asx_channel_info;

/* The state of a timer. */
typedef struct asx_timer_info {
    /* Set by the caller: sizeof(asx_timer_info). */
    uint32_t struct_size;
    /* 0 to 3: the wheel's level; ASX_TIMER_READY, ASX_TIMER_OVERFLOW or ASX_TIMER_GONE. */
    int32_t level;
    /* Its deadline, or ASX_NONE. */
    uint64_t deadline;
} asx_timer_info;

/* The timer is due. */
#define ASX_TIMER_READY 4

/* The timer is too far away for the wheel. */
#define ASX_TIMER_OVERFLOW 5

/* The timer is not armed (any more). */
#define ASX_TIMER_GONE (-1)

/* The state of all timers, the run queues and the scheduler. */
typedef struct asx_queues_info {
    /* Set by the caller: sizeof(asx_queues_info). */
    uint32_t struct_size;
    /* Zero. */
    uint32_t reserved;
    /* Armed timers. */
    uint64_t timers;
    /* The earliest deadline of a timer, or ASX_NONE. */
    uint64_t next_timer;
    /* Entries the timers' storage holds. */
    uint64_t timer_storage;
    /* Tasks queued in the cancel lane. */
    uint64_t cancel;
    /* Tasks queued in the timed lane. */
    uint64_t timed;
    /* Tasks queued in the ready lane. */
    uint64_t ready;
    /* Dispatches from the cancel lane, fallbacks not counted. */
    uint64_t cancel_dispatches;
    /* Dispatches from the timed lane. */
    uint64_t timed_dispatches;
    /* Dispatches from the ready lane. */
    uint64_t ready_dispatches;
    /* Fallback dispatches. */
    uint64_t fallback_dispatches;
    /* Cancel dispatches with the streak at the configured limit or over it. */
    uint64_t base_exceedances;
    /* The same at the limit in force while other work waited: 0. */
    uint64_t effective_exceedances;
    /* The largest limit in force. */
    uint64_t max_limit;
    /* The digest of the seven counters above. */
    uint64_t certificate;
} asx_queues_info;

/* The state of the journal. */
typedef struct asx_journal_info {
    /* Set by the caller: sizeof(asx_journal_info). */
    uint32_t struct_size;
    /* Zero. */
    uint32_t reserved;
    /* Events recorded. */
    uint64_t recorded;
    /* Events not retained. */
    uint64_t lost;
    /* Events that can be read. */
    uint64_t retained;
} asx_journal_info;

/* Fields of an event: the most any kind has. */
#define ASX_EVENT_FIELDS 8

/* `present` bit: the event is about a task. */
#define ASX_EVENT_HAS_TASK 1u

/* `present` bit: the event is about a region. */
#define ASX_EVENT_HAS_REGION 2u

/* `present` bit: the event is about a timer. */
#define ASX_EVENT_HAS_TIMER 4u

/* `present` bit: the event is about a channel. */
#define ASX_EVENT_HAS_CHANNEL 8u

/* One event of the journal. Things are named by the order of their creation. */
typedef struct asx_event {
    /* Its position, from 0. */
    uint64_t seq;
    /* The runtime's time. */
    uint64_t time;
    /* What happened: see asx_event_name. */
    uint32_t kind;
    /* Which of the next four there are, ASX_EVENT_HAS_. */
    uint32_t present;
    /* The task. */
    uint64_t task;
    /* The region. */
    uint64_t region;
    /* The timer (its generation). */
    uint64_t timer;
    /* The channel. */
    uint64_t channel;
    /* How many fields there are. */
    uint32_t fields;
    /* A bit for each field that is not null. */
    uint32_t fields_present;
    /* The fields: numbers; yes or no as 1 or 0; enumerations as numbers for asx_value_name. */
    uint64_t field[8];
} asx_event;

/* Counts of everything that is still alive. */
typedef struct asx_diagnosis {
    /* Set by the caller: sizeof(asx_diagnosis). */
    uint32_t struct_size;
    /* Zero. */
    uint32_t reserved;
    /* Tasks not Completed. */
    uint64_t tasks;
    /* Obligations still Reserved. */
    uint64_t obligations;
    /* Regions not Closed. */
    uint64_t regions;
    /* Armed timers. */
    uint64_t timers;
    /* Channels that hold messages or permits. */
    uint64_t channels;
} asx_diagnosis;

/* The result of a step. */
typedef struct asx_progress {
    /* Set by the caller: sizeof(asx_progress). */
    uint32_t struct_size;
    /* Whether nothing is runnable any more at this time. */
    int32_t idle;
    /* Polls made. */
    uint64_t polls;
    /* When something happens by itself next, or ASX_NONE. */
    uint64_t next_deadline;
    /* The task polled last; zero if none was. */
    asx_task_id last_task;
    /* The lane it came from: ASX_LANE_, or -1. */
    int32_t last_lane;
    /* Zero. */
    uint32_t reserved;
} asx_progress;

/* Counters of a runtime. */
typedef struct asx_stats {
    /* Set by the caller: sizeof(asx_stats). */
    uint32_t struct_size;
    /* Zero. */
    uint32_t reserved;
    /* Polls made. */
    uint64_t polls;
    /* Calls that reached the bound of their work with work left. */
    uint64_t overruns;
    /* Tasks cancelled by their watchdog. */
    uint64_t watchdogs;
    /* External wakes delivered. */
    uint64_t external_wakes;
    /* Misuses counted by the ghost monitors, one number for each ASX_GHOST_ kind. */
    uint64_t ghosts[9];
    /* The kernel's estimate of the memory in use. */
    uint64_t memory;
    /* Bytes of the pool; 0 without one. */
    uint64_t pool_size;
    /* Bytes of the pool in use. */
    uint64_t pool_used;
    /* The most bytes of the pool that were in use. */
    uint64_t pool_peak;
    /* Blocks the allocator gave beyond the pool's size; always 0 without one, and in a strict one. */
    uint64_t pool_spills;
    /* Cleanup entries that were dropped before they were done, because the allowance or the grace
     * of their task was used up.
     */
    uint64_t cleanups_cut;
    /* Tasks completed by force by their watchdog. */
    uint64_t watchdogs_forced;
    /* Obligations that were leaked, whether or not there is a journal. */
    uint64_t obligations_leaked;
} asx_stats;

/* Gives `size` bytes aligned for every type of C, or NULL. It runs inside a call, whose runtime
 * returns ASX_E_REENTRANT to it; it may use other runtimes.
 */
typedef void *(*asx_alloc_fn)(void *hook, size_t size);

/* Frees memory of the allocation function. The same rules apply to its calls. */
typedef void (*asx_free_fn)(void *hook, void *pointer);

/* Runtimes of a process that can have a pool of a fixed size (ASX_FLAG_POOL) at once; those
 * without one are not counted.
 */
#define ASX_POOLS_MOST 64

/* No limits but memory. */
#define ASX_PROFILE_CORE 0

/* Everything bounded; all memory is reserved at creation. */
#define ASX_PROFILE_EMBEDDED 1

/* Work per call is bounded, and calls that reach the bound are counted. */
#define ASX_PROFILE_HFT 2

/* As embedded, with a watchdog for every task. */
#define ASX_PROFILE_AUTOMOTIVE 3

/* Misuse is watched for, counted and reported through the ghost hook. */
#define ASX_FLAG_GHOSTS 1u

/* The seed is drawn from the entropy hook. */
#define ASX_FLAG_SEED_FROM_ENTROPY 2u

/* All memory is reserved at creation, as in the embedded profile. At most ASX_POOLS_MOST runtimes
 * of a process can have such a pool at once.
 */
#define ASX_FLAG_POOL 4u

/* Requests beyond the pool are refused: the allocator is not used after the creation. Only with
 * ASX_FLAG_POOL. The default in the embedded and automotive profiles. Without this flag the
 * allocator provides further blocks when the pool is used up (`pool_spills`).
 */
#define ASX_FLAG_STRICT 64u

/* There is no journal: nothing is recorded, nothing can be read, and there is no digest, so that
 * runs cannot be compared. Nothing else differs. Always set in builds without ASX_FEATURE_JOURNAL.
 */
#define ASX_FLAG_NO_JOURNAL 16u

/* The oldest event makes room. */
#define ASX_TRACE_OVERWRITE 0

/* New work is refused. */
#define ASX_TRACE_REFUSE 1

/* Tasks that are equal by priority or deadline run in the order in which they were queued. */
#define ASX_TIE_FIFO 0

/* Tasks that are equal by priority or deadline run in an order drawn from the seed: for
 * exploration.
 */
#define ASX_TIE_SEEDED 1

/* Tasks that are equal by priority or deadline run in the order of their ids. The default. */
#define ASX_TIE_TASK_KEY 2

/* Answers 64 random bits. */
typedef uint64_t (*asx_entropy_fn)(void *hook);

/* Answers a number that no other thread has. */
typedef uint64_t (*asx_thread_fn)(void *hook);

/* Takes a line of text, which is not kept; it ends with a NUL that `size` does not count. */
typedef void (*asx_log_fn)(void *hook, int32_t level, const char *text, size_t size);

/* A misuse that was noticed. */
typedef struct asx_ghost {
    /* One of the ASX_GHOST_ constants. */
    int32_t kind;
    /* The status that the call returned. */
    asx_status status;
    /* The bits of the handle it was about. */
    uint64_t bits;
    /* The generation of the handle it was about. */
    uint64_t generation;
    /* The task that was being polled, zero if none. */
    asx_task_id task;
    /* The function that was called; "asx" in a build without ASX_FEATURE_NAMES. */
    const char *call;
    /* The caller's file as given to asx_set_location, or NULL. */
    const char *file;
    /* The caller's line as given to asx_set_location, or 0. */
    uint32_t line;
    /* Zero. */
    uint32_t reserved;
} asx_ghost;

/* Takes a report of a misuse, which is not kept. */
typedef void (*asx_ghost_fn)(void *hook, const asx_ghost *ghost);

/* Reports that the watchdog of a task has expired, and the action: ASX_WATCHDOG_. */
typedef void (*asx_watchdog_fn)(void *hook, asx_runtime *rt, asx_task_id task, int32_t stage);

/* How a runtime is set up: filled by asx_runtime_config_init, then changed. */
typedef struct asx_runtime_config {
    /* sizeof(asx_runtime_config). */
    uint32_t struct_size;
    /* One of the ASX_PROFILE_ constants. */
    int32_t profile;
    /* Decides every free choice. */
    uint64_t seed;
    /* Tasks not over; ASX_NONE for no limit, here and below. */
    uint64_t max_tasks;
    /* Regions not closed, the root included: 0 is refused. */
    uint64_t max_regions;
    /* Obligations not resolved. */
    uint64_t max_obligations;
    /* Channels not fully closed. */
    uint64_t max_channels;
    /* Armed timers. */
    uint64_t max_timers;
    /* Ready entries beyond which spawns and wakes are refused. */
    uint64_t max_ready;
    /* Timed entries beyond which spawns and wakes are refused. */
    uint64_t max_timed;
    /* Cancel entries beyond which cancels of tasks are refused. */
    uint64_t max_cancel;
    /* The estimate of memory in bytes. */
    uint64_t max_memory;
    /* Events the journal keeps. */
    uint64_t max_trace;
    /* Polls, and timers fired, in one call of asx_step; 0 is refused, since nothing could run. */
    uint64_t max_steps;
    /* The treatment of events when the journal is full: ASX_TRACE_. */
    int32_t trace_full;
    /* The order of tasks that are equal by priority or deadline: ASX_TIE_. */
    int32_t tie_break;
    /* Cancel dispatches in a row while other work waits. */
    uint32_t cancel_streak_limit;
    /* ASX_FLAG_. */
    uint32_t flags;
    /* A task not kicked for so long is cancelled; ASX_NONE for no watchdog. */
    asx_time watchdog_ns;
    /* Timers at least this far away wait outside the wheel. */
    asx_time max_wheel_ns;
    /* Timers further away than this are refused. */
    asx_time max_timer_ns;
    /* Timers that are due within this grid fire together; 0: each at its time. */
    asx_time coalesce_ns;
    /* The fewest timers that fire together. */
    uint64_t coalesce_group;
    /* The id of the first timer. */
    uint64_t first_timer_id;
    /* The generation of the first timer. */
    uint64_t first_timer_generation;
    /* Links of a chain of causes. */
    uint32_t chain_depth;
    /* Bytes of a chain of causes. */
    uint32_t chain_bytes;
    /* Bytes reserved with ASX_FLAG_POOL; 0: enough for the limits. */
    uint64_t pool_bytes;
    /* Memory to use for the pool, of `pool_bytes` bytes, aligned to 16, of this runtime alone;
     * NULL: allocated. How many are enough: asx_runtime_config_pool_size.
     */
    void *pool_memory;
    /* Passed to each hook. The clock has a separate pointer. */
    void *hook;
    /* The clock for ASX_NOW; without one, `clock.now` is NULL. If it returns ASX_NONE it has no
     * time to give: the call returns ASX_E_CAPABILITY_DENIED and has no effect.
     */
    asx_clock clock;
    /* Lines for people; may be NULL. A build without ASX_FEATURE_DUMP has none. */
    asx_log_fn log;
    /* Seeds; may be NULL. */
    asx_entropy_fn entropy;
    /* Identifies the calling thread. NULL: pthread_self where there is one, else threads are not
     * checked. Called by every function, on any thread. It must not call this library, which is
     * not checked.
     */
    asx_thread_fn thread;
    /* Reports of misuse; may be NULL. */
    asx_ghost_fn ghost;
    /* Registered finalizers (asx_region_defer) that have not been started. */
    uint64_t max_finalizers;
    /* Entries of all tasks' cleanup stacks (asx_task_push_cleanup). */
    uint64_t max_cleanups;
    /* Borrows (asx_borrow_begin) not ended. */
    uint64_t max_borrows;
    /* Reports of watchdogs; may be NULL. */
    asx_watchdog_fn watchdog;
    /* A task that lives so long after its watchdog has cancelled it is completed by force;
     * ASX_NONE: never.
     */
    asx_time watchdog_grace_ns;
} asx_runtime_config;

/* Something broke, or was about to. */
#define ASX_LOG_WARN 1

/* Worth knowing. */
#define ASX_LOG_INFO 2

/* A timer or task was cancelled that already was, or is over. */
#define ASX_GHOST_DOUBLE_CANCEL 0

/* A permit was used after its resolution. */
#define ASX_GHOST_PERMIT_REUSE 1

/* A channel was used although a side of it is closed. */
#define ASX_GHOST_CLOSED_CHANNEL 2

/* An obligation was resolved twice. */
#define ASX_GHOST_DOUBLE_RESOLVE 3

/* A borrow was held when a poll ended. */
#define ASX_GHOST_BORROW_ACROSS_POLL 4

/* An exclusive borrow met another one, or a borrow was ended that is not held. */
#define ASX_GHOST_BORROW_EPOCH 5

/* A call came from a wrong thread. */
#define ASX_GHOST_AFFINITY 6

/* A stale handle was used. */
#define ASX_GHOST_STALE 7

/* A region's memory was written to behind its end or after the region was Closed, or asked for
 * then.
 */
#define ASX_GHOST_STORAGE 8

/* The version of the interface: major * 1000000 + minor * 1000 + patch. */
#define ASX_VERSION 1000u

/* There is a journal. Without it every runtime is as with ASX_FLAG_NO_JOURNAL. */
#define ASX_FEATURE_JOURNAL 1u

/* Statuses, events and values have names, and reports of misuse name the call. */
#define ASX_FEATURE_NAMES 2u

/* The texts of asx_dump and asx_verify, and lines for the log hook. */
#define ASX_FEATURE_DUMP 4u

/* The last call that failed, and the cause. */
typedef struct asx_error_info {
    /* Set by the caller: sizeof(asx_error_info). */
    uint32_t struct_size;
    /* The status that the call returned. */
    asx_status status;
    /* The function that was called. */
    const char *function;
    /* The argument that was refused, by its name in this header; NULL if it was none. */
    const char *argument;
    /* Of an argument that is a struct the field that was refused; NULL if it was none. */
    const char *field;
    /* A sentence for people. */
    const char *text;
    /* The place of the argument, from 1; 0 if it was none. */
    uint32_t position;
    /* Zero. */
    uint32_t reserved;
    /* How many calls have failed so far. */
    uint64_t count;
} asx_error_info;

/* Cancel, timed, ready. */
#define ASX_SUGGEST_NONE 0

/* Timed before cancel, within bounds. */
#define ASX_SUGGEST_MEET_DEADLINES 1

/* As usual, with the limit of cancels in a row doubled. */
#define ASX_SUGGEST_DRAIN_OBLIGATIONS 2

/* As usual, with the limit of cancels in a row doubled. */
#define ASX_SUGGEST_DRAIN_REGIONS 3

/* The largest alignment of a region's memory. */
#define ASX_ALIGN_MOST 4096

/* The error or panic a task ended with. */
#define ASX_TEXT_OUTCOME 0

/* The message of its cancel. */
#define ASX_TEXT_REASON 1

/* The error that came out of its cleanup. */
#define ASX_TEXT_CLEANUP 2

/* Both sides are open. */
#define ASX_CHANNEL_OPEN 0

/* No sender is left. Queued messages can be received. */
#define ASX_CHANNEL_SENDER_CLOSED 1

/* The receiver is gone. */
#define ASX_CHANNEL_RECEIVER_CLOSED 2

/* Neither side is left. */
#define ASX_CHANNEL_FULLY_CLOSED 3

/* The permit holds a slot. */
#define ASX_SEND_PERMIT_LIVE 0

/* The permit was tracked and dropped. */
#define ASX_SEND_PERMIT_LEAKED 3

/* The largest element. */
#define ASX_ELEMENT_MOST ((size_t)1 << 20)

/* The first event in which a run differs from a recorded one. */
typedef struct asx_replay_info {
    /* Set by the caller: sizeof(asx_replay_info). */
    uint32_t struct_size;
    /* Zero. */
    uint32_t reserved;
    /* How many events were compared and found equal. */
    uint64_t compared;
    /* Whether the recording has an event there: 1 or 0. */
    int32_t has_recorded;
    /* Whether this run has: 1 or 0. */
    int32_t has_actual;
    /* The recorded event. */
    asx_event recorded;
    /* The event of this run. */
    asx_event actual;
} asx_replay_info;

/* The content of a witness. */
typedef struct asx_witness_info {
    /* Set by the caller: sizeof(asx_witness_info). */
    uint32_t struct_size;
    /* How far the cancel has come: ASX_CANCEL_. */
    int32_t phase;
    /* Why, as strengthened so far: ASX_CANCEL_. */
    int32_t kind;
    /* Zero. */
    uint32_t reserved;
    /* The task that was cancelled. */
    asx_task_id task;
    /* The task's region. */
    asx_region_id region;
    /* Which cancel of the task: 1. */
    uint64_t epoch;
    /* The time of the request. */
    uint64_t time;
} asx_witness_info;

/* How a timer wheel is set up; see ASX_TIMER_WHEEL_CONFIG_INIT. */
typedef struct asx_timer_wheel_config {
    /* sizeof(asx_timer_wheel_config). */
    uint32_t struct_size;
    /* Zero. */
    uint32_t reserved;
    /* The time at which the wheel begins. */
    asx_time now;
    /* Armed timers; ASX_NONE for no limit but memory. */
    uint64_t max_timers;
    /* Timers at least this far away wait outside the wheel. */
    asx_time max_wheel_ns;
    /* Timers further away than this are refused. */
    asx_time max_timer_ns;
    /* Timers that are due within this grid expire together; 0: each at its time. */
    asx_time coalesce_ns;
    /* The fewest timers that expire together. */
    uint64_t coalesce_group;
} asx_timer_wheel_config;

/* ---- Names and the version: no runtime is needed. ---- */

/* The version of the library.
 *
 * - Thread: any.
 * - Returns: ASX_VERSION of the header it was built with.
 */
uint32_t asx_version(void);

/* Returns what this build of the library has, as ASX_FEATURE_ bits. The embedded build has none of
 * them; it has all functions, which report what they lack.
 *
 * - Thread: any.
 * - Returns: the features, as bits.
 */
uint32_t asx_features(void);

/* Returns the name of a status, such as "STALE_HANDLE". Unknown numbers are "UNKNOWN", as are all
 * in a build without names.
 *
 * - Thread: any.
 * - Ownership: the text is static.
 * - Returns: never NULL.
 */
const char *asx_status_name(asx_status status);

/* Returns a sentence about a status. Unknown numbers have one as well, as do all in a build
 * without names.
 *
 * - Thread: any.
 * - Ownership: the text is static.
 * - Returns: never NULL.
 */
const char *asx_status_str(asx_status status);

/* Returns the name of an event kind. Unknown numbers are "unknown", as are all in a build without
 * names.
 *
 * - Thread: any.
 * - Ownership: the text is static.
 * - Returns: never NULL.
 */
const char *asx_event_name(uint32_t kind);

/* Returns the name of the value of an event's field. Unknown numbers are "unknown", as are all in
 * a build without names.
 *
 * - Thread: any.
 * - Ownership: the text is static.
 * - Returns: never NULL.
 */
const char *asx_value_name(uint64_t number);

/* ---- Configuration. ---- */

/* Fills a configuration with the defaults of a profile.
 *
 * - Parameters: `config` points to `struct_size` writable bytes.
 * - Thread: any.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL, an unknown profile or a size that never was.
 */
asx_status asx_runtime_config_init(asx_runtime_config *config, size_t struct_size, int32_t profile);

/* Computes how many bytes a pool needs for the limits of a configuration. A creation with
 * ASX_FLAG_POOL and no `pool_bytes` reserves this size; with ASX_FLAG_STRICT a smaller one is
 * refused.
 *
 * - Parameters: `config` points to a configuration from asx_runtime_config_init; `out` is
 *   writable.
 * - Thread: any.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL, a value out of range, a size that never was,
 *   or limits that have no end.
 */
asx_status asx_runtime_config_pool_size(const asx_runtime_config *config, uint64_t *out);

/* ---- The runtime. ---- */

/* Sets the functions that allocate the library's memory. Once per process, before the first
 * runtime is created.
 *
 * - Parameters: both functions keep working until the process ends, on every thread that has a
 *   runtime.
 * - Thread: any, before other calls.
 * - Ownership: `hook` stays the caller's.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for a NULL function; ASX_E_INVALID_TRANSITION when set
 *   before or after a runtime was created; ASX_E_CAPABILITY_DENIED in a build that uses Rust's
 *   allocator.
 */
asx_status asx_set_allocator(asx_alloc_fn give, asx_free_fn take, void *hook);

/* Creates a runtime. The calling thread becomes its owner.
 *
 * - Parameters: `config` points to a configuration from asx_runtime_config_init.
 * - Thread: any; it becomes the owner.
 * - Ownership: `*out` is the caller's until asx_runtime_destroy; memory and hooks of the
 *   configuration must live as long.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL, for a value out of range, a size that never
 *   was, or a `pool_memory` that another runtime has; ASX_E_RESOURCE_EXHAUSTED without memory,
 *   when ASX_POOLS_MOST runtimes have a pool, or `pool_bytes` are too few for the limits of a
 *   strict one (the log hook gets the size of asx_runtime_config_pool_size).
 */
asx_status asx_runtime_create(const asx_runtime_config *config, asx_runtime **out);

/* Destroys a runtime and everything in it. Living tasks end as by a shutdown without a grace:
 * bodies are not polled again, cleanup stacks and finalizers run within their allowances as far as
 * they need not wait, and drop callbacks are called. The number of cleanup entries that were cut
 * off goes to the log hook.
 *
 * - Parameters: `rt` is not used afterwards, by asx_external_wake neither.
 * - Ownership: `rt` is taken.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT
 *   from inside a callback, and after one was left (asx_runtime_recover).
 */
asx_status asx_runtime_destroy(asx_runtime *rt);

/* Handles the timers, deadlines and outside wakes that are due at the time `now`, then polls up to
 * `max_steps` runnable tasks.
 *
 * - Parameters: `now` is an instant, or ASX_NOW with a clock hook; one that has passed counts as
 *   the current time. `progress` is NULL or begins with its struct_size.
 * - Returns: ASX_OK, whether or not work is left (see `progress`); ASX_E_INVALID_ARGUMENT;
 *   ASX_E_CAPABILITY_DENIED when the clock hook returns ASX_NONE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT from inside a callback; ASX_E_INTERNAL.
 */
asx_status asx_step(asx_runtime *rt, asx_time now, uint64_t max_steps, asx_progress *progress);

/* Polls tasks until none is runnable at the time `now`.
 *
 * - Parameters: as asx_step.
 * - Returns: ASX_OK when idle; ASX_E_RESOURCE_EXHAUSTED when the profile's bound was reached with
 *   work left; ASX_E_INVALID_ARGUMENT; ASX_E_CAPABILITY_DENIED when the clock hook returns
 *   ASX_NONE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT from inside a callback; ASX_E_INTERNAL.
 */
asx_status asx_run_until_idle(asx_runtime *rt, asx_time now, asx_progress *progress);

/* Wakes a task from any thread, signal handler or interrupt. The task is runnable at the next
 * step.
 *
 * - Parameters: the runtime is not being destroyed.
 * - Thread: any; the one call that is.
 * - Returns: ASX_OK, also for a task that is over or was released a moment ago, which nothing
 *   happens to; ASX_E_INVALID_ARGUMENT for NULL or a handle of another type; ASX_E_STALE_HANDLE
 *   for a task that never existed, or a slot that was reused.
 */
asx_status asx_external_wake(asx_runtime *rt, asx_task_id task);

/* Reads the time of the runtime.
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_now(asx_runtime *rt, asx_time *out);

/* Sets the time of the runtime without polling anything. An earlier time changes nothing.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for ASX_NOW; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_advance(asx_runtime *rt, asx_time now);

/* Handles timers, deadlines, graces and watchdogs that are due, without polling anything.
 *
 * - Parameters: `fired` is NULL or writable: how many timers fired.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_fire_timers(asx_runtime *rt, uint64_t *fired);

/* Reads the earliest instant at which a timer, deadline, grace or watchdog is due.
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_EMPTY when nothing will; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_next_deadline(asx_runtime *rt, asx_time *out);

/* Sets the suggestion of the governor to the scheduler, from the next decision on.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for an unknown mode; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_set_governor_mode(asx_runtime *rt, int32_t mode);

/* Announces that the runtime is about to stop: wakes the tasks that wait in asx_task_stopping.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_soft_stop(asx_runtime *rt);

/* Shuts down in steps: a soft stop now; the root is closed after `soft_ns`; tasks that still
 * live `force_ns` later are completed by force. Each finalizer has `force_ns` again, as with
 * asx_region_close. Keep stepping until asx_quiescent returns ASX_OK.
 *
 * - Parameters: `force_ns` may be ASX_NONE: nothing is forced.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_RESOURCE_EXHAUSTED without memory for one
 *   more than the first; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_shutdown(asx_runtime *rt, asx_time soft_ns, asx_time force_ns);

/* Checks whether everything has ended. If not, reports what is still alive.
 *
 * - Parameters: `diagnosis` is NULL or begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_TASKS_STILL_ACTIVE, ASX_E_OBLIGATIONS_UNRESOLVED,
 *   ASX_E_REGIONS_NOT_CLOSED, ASX_E_TIMERS_PENDING or ASX_E_CHANNEL_NOT_DRAINED, the first in
 *   this order; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_quiescent(asx_runtime *rt, asx_diagnosis *diagnosis);

/* Writes the tree of everything alive as text for people.
 *
 * - Parameters: `text` has room for `room` bytes; `size` is NULL or writable: the length of
 *   the whole text.
 * - Returns: ASX_OK; ASX_E_FULL when it was cut; ASX_E_CAPABILITY_DENIED in a build without
 *   ASX_FEATURE_DUMP; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_dump(asx_runtime *rt, char *text, size_t room, size_t *size);

/* Checks every invariant. The text names a broken one by its id and the finding. After
 * ASX_E_INTERNAL only asx_runtime_destroy may be called.
 *
 * - Parameters: as asx_dump.
 * - Returns: ASX_OK; ASX_E_INTERNAL when one is broken; ASX_E_CAPABILITY_DENIED in a build
 *   without ASX_FEATURE_DUMP; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_verify(asx_runtime *rt, char *text, size_t room, size_t *size);

/* Draws a number from the runtime's random stream, which is determined by the seed.
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_random(asx_runtime *rt, uint64_t *out);

/* Reads the state of timers and run queues, and the counters of the scheduler.
 *
 * - Parameters: `info` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_get_queues(asx_runtime *rt, asx_queues_info *info);

/* Reads the counters of the runtime.
 *
 * - Parameters: `stats` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_get_stats(asx_runtime *rt, asx_stats *stats);

/* Sets the source position of the next call, for reports of misuse and leaks. ASX_CALL uses
 * it.
 *
 * - Parameters: `file` is NULL or a text that lives until that call is over, and as long as
 *   the runtime if it reserves an obligation: __FILE__ does.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_set_location(asx_runtime *rt, const char *file, uint32_t line);

/* Declares that the program borrows some of its data until asx_borrow_end, at most until the
 * poll under way ends. The ghost monitors check this.
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK, in a conflict too; ASX_E_INVALID_ARGUMENT; ASX_E_RESOURCE_EXHAUSTED when
 *   `max_borrows` were not ended, or without memory; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_borrow_begin(asx_runtime *rt, int32_t exclusive, uint64_t *out);

/* Ends a borrow.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for a borrow that is not held;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_borrow_end(asx_runtime *rt, uint64_t borrow);

/* ---- What went wrong. ---- */

/* Reads the last failed call of the owner's thread to this runtime: function, argument and cause.
 * Statuses below ASX_E_INVALID_ARGUMENT are no failures. The record stays until the next failure;
 * failures of this function, of asx_external_wake and of asx_thread_number are not recorded. May
 * be called from hooks and drop callbacks too. Before a runtime exists use
 * asx_runtime_config_check.
 *
 * - Parameters: `error` begins with its struct_size.
 * - Ownership: the texts are static.
 * - Returns: ASX_OK; ASX_E_EMPTY when no call has failed; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_AFFINITY_VIOLATION.
 */
asx_status asx_last_error(asx_runtime *rt, asx_error_info *error);

/* Checks a configuration as asx_runtime_create does, without creating anything, and reports the
 * field that is refused. Available memory is not checked.
 *
 * - Parameters: `config` points to a configuration from asx_runtime_config_init; `error` is NULL
 *   or begins with its struct_size: it is written unless the call returns ASX_OK.
 * - Thread: any.
 * - Ownership: nothing is kept; the texts are static.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for what asx_runtime_create refuses with it;
 *   ASX_E_RESOURCE_EXHAUSTED for a pool that no memory can have, or with ASX_FLAG_STRICT for one
 *   that is too small for the limits (asx_runtime_config_pool_size).
 */
asx_status asx_runtime_config_check(const asx_runtime_config *config, asx_error_info *error);

/* ---- After a callback that did not return. ---- */

/* Declares that a callback of this runtime was left by longjmp or an exception and will not
 * return. Until then asx_step and asx_runtime_destroy return ASX_E_REENTRANT. A task whose poll
 * was left ends as by ASX_POLL_PANICKED, and the runtime continues; the rest of the call under way
 * is skipped. If a function of asx_set_allocator was left, every later call returns
 * ASX_E_INTERNAL, and asx_runtime_destroy calls nothing and frees nothing but a pool.
 *
 * - Parameters: no callback and no call of this runtime is under way; a call from inside one is
 *   undefined behaviour. Leaving a callback remains forbidden: destructors of the skipped frames
 *   do not run.
 * - Returns: ASX_OK; ASX_E_INVALID_TRANSITION when no callback was left; ASX_E_INVALID_ARGUMENT
 *   for NULL; ASX_E_AFFINITY_VIOLATION.
 */
asx_status asx_runtime_recover(asx_runtime *rt);

/* ---- Handing a runtime over. ---- */

/* The number of the calling thread, as this runtime knows it: from the thread hook if it has one.
 *
 * - Parameters: `out` is writable; the runtime is not being destroyed.
 * - Thread: any.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT.
 */
asx_status asx_thread_number(asx_runtime *rt, uint64_t *out);

/* Makes the thread with this number (asx_thread_number) the owner. It may call the runtime as soon
 * as it knows of the transfer; the former owner may not call it any more.
 *
 * - Parameters: `certificate` begins with its struct_size: former owner, new owner, and how often
 *   the runtime has changed hands. A number that no thread has leaves the runtime without an
 *   owner.
 * - Thread: the owner's, which it is no longer.
 * - Ownership: the runtime, with destroying it, is the other thread's.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT from inside
 *   a callback; ASX_E_INTERNAL.
 */
asx_status asx_runtime_transfer(asx_runtime *rt, uint64_t to, asx_transfer *certificate);

/* Checks whether a certificate is that of the last transfer. A new owner may call this before
 * it continues.
 *
 * - Parameters: `certificate` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_STALE_HANDLE for one of another transfer than the last;
 *   ASX_E_INVALID_ARGUMENT for one that was never given; ASX_E_AFFINITY_VIOLATION for a thread
 *   that does not own the runtime; ASX_E_REENTRANT.
 */
asx_status asx_runtime_accept(asx_runtime *rt, const asx_transfer *certificate);

/* ---- Regions. ---- */

/* The root region, which every other is inside of.
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_root(asx_runtime *rt, asx_region_id *out);

/* Opens a child region.
 *
 * - Parameters: `options` is NULL or begins with its struct_size; `out` is writable.
 * - Ownership: the region belongs to its parent.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
 *   ASX_E_ADMISSION_CLOSED; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_open(
    asx_runtime *rt,
    asx_region_id parent,
    const asx_region_options *options,
    asx_region_id *out);

/* Declares that nothing more will be added from outside: the region closes when nothing lives
 * inside. Nothing is cancelled.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_end(asx_runtime *rt, asx_region_id region);

/* Closes a region with a reason and cancels everything inside. Later calls strengthen the
 * reason.
 *
 * `force_ns` is the grace of each round: what still lives that long after the request is
 * completed by force, then the finalizers run, and each of them has the same time again from
 * its start. ASX_NONE: nothing is forced. So a close of a region with n finalizers may take up
 * to n + 1 times `force_ns`.
 *
 * - Parameters: `message` is NULL or UTF-8 of less than 4096 bytes; `first` is NULL or
 *   writable: whether it was the first request.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when
 *   there is no memory for the message, without which it always goes;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_close(
    asx_runtime *rt,
    asx_region_id region,
    asx_cancel_kind kind,
    const char *message,
    asx_time force_ns,
    int32_t *first);

/* Opens (nonzero) or shuts the gate of a region. A region with a shut gate admits nothing new.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_gate(asx_runtime *rt, asx_region_id region, int32_t open);

/* Registers a finalizer. Finalizers run when everything else in the region has ended, the last
 * one first.
 *
 * - Parameters: `body.poll` is not NULL.
 * - Ownership: `body.ctx` is the runtime's until `body.drop`; on a refusal it stays the
 *   caller's.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
 *   ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_defer(asx_runtime *rt, asx_region_id region, asx_body body);

/* Spawns a finalizer task into a region that is finalizing.
 *
 * - Parameters: `body.poll` is not NULL; `out` is writable.
 * - Ownership: as asx_region_defer.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION;
 *   ASX_E_REGION_CLOSED; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_spawn_finalizer(
    asx_runtime *rt,
    asx_region_id region,
    asx_body body,
    asx_task_id *out);

/* Counts bytes against the memory limit, on behalf of a region, until it closes.
 *
 * - Ownership: nothing is allocated.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_CLOSED;
 *   ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_use_storage(asx_runtime *rt, asx_region_id region, size_t bytes);

/* Frees the slot of a Closed region and forgets its outcome, and those of everything that was
 * inside. Their handles become stale.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
 *   it is not closed, or the root; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_release(asx_runtime *rt, asx_region_id region);

/* Reads how a region ended: the fold of its children's outcomes, ASX_OUTCOME_. Outcome and
 * reason are kept until the region or one around it is released, or the runtime is destroyed.
 *
 * - Parameters: `outcome` is writable.
 * - Returns: ASX_OK; ASX_E_INCOMPLETE_CHILDREN when it is not closed; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_outcome(asx_runtime *rt, asx_region_id region, int32_t *outcome);

/* Reads the state of a region. A region whose parent has closed is stale: use
 * asx_region_outcome.
 *
 * - Parameters: `info` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_get_info(asx_runtime *rt, asx_region_id region, asx_region_info *info);

/* Makes a handle of the region with its current state, for asx_handle_mask. Also for regions
 * that are kept (asx_region_outcome).
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_snapshot(asx_runtime *rt, asx_region_id region, asx_region_id *out);

/* Reads a link of the chain of causes of a region's close. Link 0 is the reason itself.
 *
 * - Parameters: `reason` begins with its struct_size; `text` has room for `room` bytes of the
 *   message, 0 if it is not wanted; `size` is NULL or writable: its length.
 * - Returns: ASX_OK; ASX_E_EMPTY when there is no such link; ASX_E_FULL when the message was
 *   cut; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_reason(
    asx_runtime *rt,
    asx_region_id region,
    uint32_t depth,
    asx_cancel_reason *reason,
    char *text,
    size_t room,
    size_t *size);

/* Waits for a region to close, on behalf of a task, and reads its outcome, ASX_OUTCOME_.
 *
 * - Parameters: `outcome` is writable.
 * - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it has closed;
 *   ASX_E_CANCELLED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
 *   the task is over; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_wait(
    asx_runtime *rt,
    asx_region_id region,
    asx_task_id task,
    int32_t *outcome);

/* Checks what an explicit step of the region to a state would return. Nothing changes.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for an unknown state; ASX_E_STALE_HANDLE;
 *   ASX_E_INVALID_TRANSITION; ASX_E_INCOMPLETE_CHILDREN; ASX_E_UNRESOLVED_OBLIGATIONS;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_check(asx_runtime *rt, asx_region_id region, int32_t state);

/* ---- Memory of regions. ---- */

/* Allocates `size` zeroed bytes, aligned to `align`, that live as long as the region. They are
 * freed all at once when the region is Closed, after the drop callbacks of everything inside.
 * They count as with asx_region_use_storage, rounded up to the alignment. With ASX_FLAG_GHOSTS
 * freed memory is overwritten, and writes behind its end or after it was freed are reported
 * (ASX_GHOST_STORAGE).
 *
 * - Parameters: `size` is not 0; `align` is a power of two, at most ASX_ALIGN_MOST; `out` is
 *   writable.
 * - Ownership: the memory is the region's.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_CLOSED;
 *   ASX_E_RESOURCE_EXHAUSTED when the memory limit, the pool or the allocator has no more;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_alloc(
    asx_runtime *rt,
    asx_region_id region,
    size_t size,
    size_t align,
    void **out);

/* ---- Inside a poll. ---- */

/* Checks whether the task is cancelled, and acknowledges the cancel if so: the task is to
 * clean up from then on, within the allowance of the cancel.
 *
 * - Parameters: `cx` is the argument of the poll function, or made by asx_cx_of.
 * - Returns: ASX_OK when the task is not cancelled, or shielded; ASX_E_CANCELLED;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when the task is
 *   over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_checkpoint(asx_cx *cx);

/* Returns whether the task is cancelled, and acknowledges the cancel if so, as asx_checkpoint
 * does. A call that asx_checkpoint would refuse returns true, so that a loop around it ends;
 * asx_last_error says why, as of asx_checkpoint.
 *
 * - Parameters: as asx_checkpoint.
 * - Returns: false when the task is not cancelled, or shielded; true.
 */
bool asx_is_cancelled(asx_cx *cx);

/* ---- Tasks. ---- */

/* Spawns a task into an open region.
 *
 * - Parameters: `body.poll` is not NULL; `options` is NULL or begins with its struct_size;
 *   `out` is writable.
 * - Ownership: `body.ctx` is the runtime's until `body.drop`; on a refusal it stays the
 *   caller's.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
 *   ASX_E_ADMISSION_CLOSED; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_task_spawn(
    asx_runtime *rt,
    asx_region_id region,
    asx_body body,
    const asx_task_options *options,
    asx_task_id *out);

/* Records a task that failed to start. It is completed at once, with an error.
 *
 * - Parameters: `status` is one of the ASX_E_ constants, or -1 for none: codes of the
 *   program's own belong in the message; `message` is NULL or UTF-8 of less than 4096 bytes;
 *   `out` is writable.
 * - Returns: as asx_task_spawn.
 */
asx_status asx_task_spawn_failed(
    asx_runtime *rt,
    asx_region_id region,
    int32_t status,
    const char *message,
    asx_task_id *out);

/* Wakes a task. A wake of a completed task is recorded in the journal and does nothing.
 *
 * - Thread: the owner's; elsewhere asx_external_wake.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when
 *   its queue is full; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_wake(asx_runtime *rt, asx_task_id task);

/* Requests that a task stops. The task observes the request at its next checked call. Later
 * requests strengthen the reason.
 *
 * - Parameters: `message` is NULL or UTF-8 of less than 4096 bytes; `first` is NULL or
 *   writable: whether it was the first request to a living task.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when
 *   the cancel queue is full, or there is no memory for the message; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_task_cancel(
    asx_runtime *rt,
    asx_task_id task,
    asx_cancel_kind kind,
    const char *message,
    int32_t *first);

/* Reads the state of a task. A task whose region is stale is stale too: use asx_task_outcome.
 *
 * - Parameters: `info` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_task_get_info(asx_runtime *rt, asx_task_id task, asx_task_info *info);

/* Makes a handle of the task with its current state, for asx_handle_mask. Also for tasks that
 * are kept (asx_task_outcome).
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_task_snapshot(asx_runtime *rt, asx_task_id task, asx_task_id *out);

/* Reads how a task ended, ASX_OUTCOME_. Outcome, texts and reason are kept until the task or
 * its region is released, or the runtime is destroyed, whatever has closed meanwhile.
 *
 * - Parameters: `outcome` is writable.
 * - Returns: ASX_OK; ASX_E_TASKS_STILL_ACTIVE when it is not over; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_outcome(asx_runtime *rt, asx_task_id task, int32_t *outcome);

/* Reads a text of a task, ASX_TEXT_.
 *
 * - Parameters: `text` has room for `room` bytes; `size` is NULL or writable: its length.
 * - Returns: ASX_OK; ASX_E_EMPTY when there is none; ASX_E_FULL when it was cut;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_get_text(
    asx_runtime *rt,
    asx_task_id task,
    int32_t which,
    char *text,
    size_t room,
    size_t *size);

/* Reads a link of the chain of causes of a task's cancel. Link 0 is the reason itself.
 *
 * - Parameters: as asx_region_reason.
 * - Returns: ASX_OK; ASX_E_EMPTY when there is no such link; ASX_E_FULL when the message was
 *   cut; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_task_reason(
    asx_runtime *rt,
    asx_task_id task,
    uint32_t depth,
    asx_cancel_reason *reason,
    char *text,
    size_t room,
    size_t *size);

/* Lists the tasks that wait to be polled, with their context pointers, by slot.
 *
 * - Parameters: `entries` has room for `room` of them; `count` is writable: how many there
 *   are.
 * - Returns: ASX_OK; ASX_E_FULL when some were left out; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_list(asx_runtime *rt, asx_task_entry *entries, size_t room, size_t *count);

/* Reads the task that is being polled.
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_EMPTY outside a poll; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_current(asx_runtime *rt, asx_task_id *out);

/* Checks for a cancel as asx_is_cancelled does, with the result in `*out` and a status.
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
 *   it is over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_is_cancelled(asx_runtime *rt, asx_task_id task, int32_t *out);

/* Acknowledges a cancel on behalf of the task. A second acknowledgement is no error.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_TRANSITION when there is nothing to acknowledge;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_acknowledge(asx_runtime *rt, asx_task_id task);

/* Hides cancels from the task until the matching asx_task_unshield.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_shield(asx_runtime *rt, asx_task_id task);

/* Ends the innermost shield.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION
 *   without a shield; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_unshield(asx_runtime *rt, asx_task_id task);

/* Spends cost from the task's budget.
 *
 * - Returns: ASX_OK; ASX_E_BUDGET_EXHAUSTED, with nothing spent and the cancel begun;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when it is over;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_spend(asx_runtime *rt, asx_task_id task, uint64_t cost);

/* Pushes an entry on the task's cleanup stack, which runs however the task ends, last in
 * first: by itself, by a cancel, by force at the end of a grace, or with its runtime. Entries
 * the allowance or the grace does not reach are dropped; the journal records it
 * (cleanup_overrun, with the task), and asx_stats counts them.
 *
 * - Parameters: `body.poll` is not NULL.
 * - Ownership: `body.ctx` is the runtime's until `body.drop`; on a refusal it stays the
 *   caller's.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
 *   it is over; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_push_cleanup(asx_runtime *rt, asx_task_id task, asx_body body);

/* Begins a sleep of the task, no longer than its deadline. See asx_task_sleep_over.
 *
 * - Parameters: `out` is writable.
 * - Ownership: the timer is the task's.
 * - Returns: ASX_OK; ASX_E_CANCELLED; ASX_E_BUDGET_EXHAUSTED; ASX_E_TIMER_DURATION_EXCEEDED;
 *   ASX_E_RESOURCE_EXHAUSTED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE;
 *   ASX_E_INVALID_TRANSITION when it is over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_sleep(asx_runtime *rt, asx_task_id task, asx_when when, asx_timer_handle *out);

/* Checks whether a sleep has ended.
 *
 * - Parameters: `timer` came from asx_task_sleep.
 * - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it is; ASX_E_CANCELLED;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when the task is
 *   over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_sleep_over(asx_runtime *rt, asx_task_id task, asx_timer_handle timer);

/* Waits for another task to end, on behalf of a task, and reads its outcome, ASX_OUTCOME_.
 *
 * - Parameters: `target` is not the task itself; `outcome` is writable.
 * - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it has ended;
 *   ASX_E_CANCELLED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
 *   the task is over; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_task_join(asx_runtime *rt, asx_task_id task, asx_task_id target, int32_t *outcome);

/* Waits for the soft stop, on behalf of a task.
 *
 * - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it begins; ASX_E_CANCELLED;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when the task is
 *   over; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_stopping(asx_runtime *rt, asx_task_id task);

/* Sets the error for ASX_POLL_ERROR, or the message for ASX_POLL_PANICKED, of the poll that
 * is under way.
 *
 * - Parameters: `status` is one of the ASX_E_ constants, or -1 for none: codes of the
 *   program's own belong in the message; `message` is NULL or UTF-8 of less than 4096 bytes.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_INVALID_TRANSITION when this task is not
 *   being polled; ASX_E_RESOURCE_EXHAUSTED without memory for it; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_task_set_error(
    asx_runtime *rt,
    asx_task_id task,
    int32_t status,
    const char *message);

/* Arms the task's watchdog anew: unless it is kicked within `span_ns` it is cancelled with
 * ASX_CANCEL_TIMEOUT. ASX_NONE takes the watchdog away. If it lives `grace_ns` later
 * (ASX_NONE: however long) it is completed by force: its body is dropped, and its cleanup
 * stack runs for as long again. The watchdog hook is called for both. A watchdog that has
 * expired is not changed.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
 *   the task is over; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_task_set_watchdog(
    asx_runtime *rt,
    asx_task_id task,
    uint64_t span_ns,
    uint64_t grace_ns);

/* Restarts the watchdog of a task.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
 *   the task is over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_kick_watchdog(asx_runtime *rt, asx_task_id task);

/* Frees the slot of a Completed task and forgets its outcome. Its handle becomes stale.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
 *   it is not over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_release(asx_runtime *rt, asx_task_id task);

/* Checks what an explicit step of the task to a state would return. Nothing changes.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for an unknown state; ASX_E_STALE_HANDLE;
 *   ASX_E_INVALID_TRANSITION; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_check(asx_runtime *rt, asx_task_id task, int32_t state);

/* ---- Obligations. ---- */

/* Reserves an obligation in an open region.
 *
 * - Parameters: `out` is writable.
 * - Ownership: the caller is to commit or abort it.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
 *   ASX_E_ADMISSION_CLOSED; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_obligation_reserve(asx_runtime *rt, asx_region_id region, asx_obligation_id *out);

/* Commits an obligation.
 *
 * - Ownership: the obligation is resolved.
 * - Returns: ASX_OK; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_OBLIGATION_LEAKED;
 *   ASX_E_REGION_CLOSED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_obligation_commit(asx_runtime *rt, asx_obligation_id obligation);

/* Aborts an obligation.
 *
 * - Ownership: the obligation is resolved.
 * - Returns: as asx_obligation_commit.
 */
asx_status asx_obligation_abort(asx_runtime *rt, asx_obligation_id obligation);

/* Reads the state of an obligation, ASX_OBLIGATION_. A resolved obligation is forgotten, which
 * the call reports.
 *
 * - Parameters: `state` is writable.
 * - Returns: ASX_OK; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_obligation_state(asx_runtime *rt, asx_obligation_id obligation, int32_t *state);

/* Checks what an explicit step of the obligation to a state would return. Nothing changes.
 *
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for an unknown state; ASX_E_STALE_HANDLE;
 *   ASX_E_INVALID_TRANSITION; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_OBLIGATION_LEAKED;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_obligation_check(asx_runtime *rt, asx_obligation_id obligation, int32_t state);

/* ---- Channels and permits. ---- */

/* Creates a channel with one sender and one receiver: of a region, or free-standing.
 *
 * - Parameters: `region` is NULL or a region; `capacity` is 1 or more; `element_size` is at
 *   most ASX_ELEMENT_MOST; `sender` and `receiver` are writable.
 * - Ownership: a region's channel is closed with it; a free-standing one is the caller's to
 *   close and release.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
 *   ASX_E_ADMISSION_CLOSED; ASX_E_RESOURCE_EXHAUSTED, also when there is no memory for its
 *   elements, or none left for them in the pool; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_create(
    asx_runtime *rt,
    const asx_region_id *region,
    size_t capacity,
    size_t element_size,
    asx_channel_sender *sender,
    asx_channel_receiver *receiver);

/* Reserves a slot on behalf of a task, which waits in line if it must. Checked in this order:
 * a cancel of the task, the receiver, the line, the capacity.
 *
 * - Parameters: `cx` is of the sender's runtime; `out` is writable.
 * - Ownership: the permit is the task's to resolve; the task's end aborts it.
 * - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it is its turn;
 *   ASX_E_CANCELLED, and nothing has changed; ASX_E_DISCONNECTED when the receiver is gone;
 *   ASX_E_RESOURCE_EXHAUSTED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE;
 *   ASX_E_REGION_NOT_OPEN; ASX_E_INVALID_TRANSITION when the task is over;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_reserve(asx_channel_sender *sender, asx_cx *cx, asx_send_permit *out);

/* Reserves a slot as asx_channel_reserve does, with a permit that is also an obligation of the
 * task's region: if it is dropped without being resolved it is recorded as leaked. If the
 * region does not admit the obligation, the task's turn has passed.
 *
 * - Parameters: as asx_channel_reserve.
 * - Ownership: the permit is the task's to resolve; the task's end aborts it.
 * - Returns: as asx_channel_reserve; ASX_E_REGION_NOT_OPEN; ASX_E_ADMISSION_CLOSED.
 */
asx_status asx_channel_reserve_tracked(
    asx_channel_sender *sender,
    asx_cx *cx,
    asx_send_permit *out);

/* Reserves a slot if one is free and no sender waits. Does not check for a cancel.
 *
 * - Parameters: `holder` is NULL or a task; `tracked` is nonzero for a permit that is also an
 *   obligation; `out` is writable.
 * - Ownership: as asx_channel_reserve; without a holder the permit is the caller's to resolve.
 * - Returns: ASX_OK; ASX_E_FULL; ASX_E_DISCONNECTED; ASX_E_RESOURCE_EXHAUSTED;
 *   ASX_E_REGION_NOT_OPEN; ASX_E_ADMISSION_CLOSED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE;
 *   ASX_E_INVALID_TRANSITION when the holder is over; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_channel_try_reserve(
    asx_channel_sender *sender,
    const asx_task_id *holder,
    int32_t tracked,
    asx_send_permit *out);

/* Sends a message into the permit's slot. ASX_OK and ASX_E_DISCONNECTED resolve the permit;
 * after any other status it is unchanged.
 *
 * - Parameters: `value` has as many readable bytes as the channel's elements; NULL if that is
 *   0.
 * - Ownership: the message is copied; the permit is resolved.
 * - Returns: ASX_OK; ASX_E_DISCONNECTED when the receiver is gone;
 *   ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_OBLIGATION_LEAKED; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_send_permit_send(asx_send_permit *permit, const void *value);

/* Aborts a permit as asx_send_permit_abort does, and returns a status.
 *
 * - Ownership: the permit is resolved.
 * - Returns: ASX_OK; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_OBLIGATION_LEAKED;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_send_permit_try_abort(asx_send_permit *permit);

/* Drops a permit without resolving it. A tracked permit is recorded as leaked, any other is
 * aborted.
 *
 * - Parameters: `leaked` is NULL or writable: whether an obligation leaked.
 * - Ownership: the permit is gone.
 * - Returns: as asx_send_permit_try_abort.
 */
asx_status asx_send_permit_drop(asx_send_permit *permit, int32_t *leaked);

/* Reads the state of a permit: ASX_SEND_PERMIT_LIVE or ASX_SEND_PERMIT_LEAKED. A resolved
 * permit is forgotten, which the call reports.
 *
 * - Parameters: `state` is writable.
 * - Returns: ASX_OK; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_send_permit_state(asx_send_permit *permit, int32_t *state);

/* Sends if there is room and no sender waits.
 *
 * - Parameters: `value` has as many readable bytes as the channel's elements; NULL if that is
 *   0.
 * - Ownership: the message is copied.
 * - Returns: ASX_OK; ASX_E_FULL; ASX_E_DISCONNECTED; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when there is no memory for one message more,
 *   with a pool never; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_try_send(asx_channel_sender *sender, const void *value);

/* Sends at once: into a free slot even if senders wait, else in the place of the oldest
 * message.
 *
 * - Parameters: `value` as for asx_channel_try_send; `old` is NULL or has as many writable
 *   bytes as the channel's elements, for the message that had to go; `evicted` is NULL or
 *   writable: whether there was one.
 * - Ownership: messages are copied.
 * - Returns: ASX_OK; ASX_E_FULL when there are permits only; ASX_E_DISCONNECTED;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED as
 *   asx_channel_try_send; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_evict(
    asx_channel_sender *sender,
    const void *value,
    void *old,
    int32_t *evicted);

/* Receives a message on behalf of a task, which waits if there is none. A cancel of the task
 * is checked first.
 *
 * - Parameters: `cx` is of the receiver's runtime; `out` has as many writable bytes as the
 *   channel's elements; NULL if that is 0.
 * - Ownership: the message is copied.
 * - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when there is something;
 *   ASX_E_CANCELLED, and nothing was received; ASX_E_DISCONNECTED when there is no message and
 *   no sender; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when the
 *   task is over; ASX_E_RESOURCE_EXHAUSTED without memory for a wait;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_recv(asx_channel_receiver *receiver, asx_cx *cx, void *out);

/* Receives a message if there is one. Does not check for a cancel.
 *
 * - Parameters: `out` has as many writable bytes as the channel's elements; NULL if that is 0.
 * - Ownership: the message is copied.
 * - Returns: ASX_OK; ASX_E_EMPTY; ASX_E_DISCONNECTED; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_try_recv(asx_channel_receiver *receiver, void *out);

/* Ends the task's wait on a channel, if there is one. A channel that is gone has none.
 *
 * - Parameters: `waited` is NULL or writable: whether it had.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_channel_abandon(
    asx_runtime *rt,
    asx_channel_id channel,
    asx_task_id task,
    int32_t *waited);

/* Adds a sender to the channel.
 *
 * - Parameters: `out` is writable, and may be `sender` itself.
 * - Ownership: one more sender to be closed.
 * - Returns: ASX_OK; ASX_E_DISCONNECTED once the last is closed; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_sender_clone(asx_channel_sender *sender, asx_channel_sender *out);

/* Closes a sender. After the last one is closed, the receiver gets the queued messages, then
 * ASX_E_DISCONNECTED.
 *
 * - Ownership: the sender is gone.
 * - Returns: ASX_OK; ASX_E_DISCONNECTED once the last is closed; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_sender_close(asx_channel_sender *sender);

/* Closes the receiver. Queued messages are dropped, and waiting senders are woken.
 *
 * - Ownership: the receiver is gone.
 * - Returns: ASX_OK; ASX_E_DISCONNECTED when it is closed; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_receiver_close(asx_channel_receiver *receiver);

/* Frees the slot of a fully closed channel. Its handle becomes stale.
 *
 * - Ownership: the channel is gone.
 * - Returns: ASX_OK; ASX_E_INVALID_TRANSITION when a side is open; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_channel_release(asx_runtime *rt, asx_channel_id channel);

/* Reads the state of a channel.
 *
 * - Parameters: `info` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_channel_get_info(asx_runtime *rt, asx_channel_id channel, asx_channel_info *info);

/* Aborts a permit: its slot is free again. If the call is refused nothing changes; asx_last_error
 * reports why, and asx_send_permit_try_abort returns the status.
 *
 * - Ownership: the permit is resolved.
 */
void asx_send_permit_abort(asx_send_permit *permit);

/* ---- Timers of regions. ---- */

/* Arms a timer of a region, which may wake a task.
 *
 * - Parameters: `wakes` is NULL or a task; `out` is writable.
 * - Ownership: the timer is the region's.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
 *   ASX_E_TIMER_DURATION_EXCEEDED; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_region_timer_arm(
    asx_runtime *rt,
    asx_region_id region,
    asx_when when,
    const asx_task_id *wakes,
    asx_timer_handle *out);

/* Cancels a timer. For a timer that has ended or never existed nothing happens, which is no
 * error.
 *
 * - Parameters: `cancelled` is NULL or writable: whether it was armed.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_timer_cancel(asx_runtime *rt, asx_timer_handle timer, int32_t *cancelled);

/* Arms a new timer in place of an old one. If the new one is refused the old one stays. The
 * old one may have ended.
 *
 * - Parameters: as asx_region_timer_arm.
 * - Ownership: as asx_region_timer_arm.
 * - Returns: as asx_region_timer_arm.
 */
asx_status asx_region_timer_update(
    asx_runtime *rt,
    asx_timer_handle old,
    asx_region_id region,
    asx_when when,
    const asx_task_id *wakes,
    asx_timer_handle *out);

/* Reads the state of a timer. One that has ended is ASX_TIMER_GONE.
 *
 * - Parameters: `info` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_region_timer_get_info(asx_runtime *rt, asx_timer_handle timer, asx_timer_info *info);

/* ---- Timer wheels: no runtime is needed. ---- */

/* Creates a timer wheel, which needs no runtime. Its functions may be called from any thread, and
 * from inside polls and hooks, but not by two threads at once, and not by the functions of
 * asx_set_allocator.
 *
 * - Parameters: `config` is NULL or begins with its struct_size; NULL: the time is 0, and timers
 *   are up to 7 days away; `out` is writable.
 * - Thread: any.
 * - Ownership: `*out` is the caller's until asx_timer_wheel_destroy.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_RESOURCE_EXHAUSTED without memory.
 */
asx_status asx_timer_wheel_create(const asx_timer_wheel_config *config, asx_timer_wheel **out);

/* Destroys a timer wheel. The wakers of its timers are not called.
 *
 * - Parameters: `wheel` is not used afterwards.
 * - Thread: any.
 * - Ownership: `wheel` is taken.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL; ASX_E_REENTRANT from the functions of
 *   asx_set_allocator.
 */
asx_status asx_timer_wheel_destroy(asx_timer_wheel *wheel);

/* Registers a timer. A deadline that has passed is accepted, and due at once.
 *
 * - Parameters: `out` is writable.
 * - Thread: any, one at a time.
 * - Ownership: `waker.data` stays the caller's, and must live until the timer is cancelled or
 *   collected.
 * - Returns: ASX_OK; ASX_E_TIMER_DURATION_EXCEEDED; ASX_E_RESOURCE_EXHAUSTED when the limit is
 *   reached, or without memory; ASX_E_INVALID_ARGUMENT; ASX_E_REENTRANT.
 */
asx_status asx_timer_try_register(
    asx_timer_wheel *wheel,
    asx_time deadline,
    asx_waker waker,
    asx_timer_handle *out);

/* Registers a timer as asx_timer_try_register does. If it is refused, `*out` is set to a handle
 * that names no timer, which asx_timer_cancel and asx_timer_update accept. asx_timer_try_register
 * leaves `*out` unchanged then.
 *
 * - Parameters: as asx_timer_try_register.
 * - Thread: any, one at a time.
 * - Ownership: as asx_timer_try_register.
 * - Returns: as asx_timer_try_register.
 */
asx_status asx_timer_register(
    asx_timer_wheel *wheel,
    asx_time deadline,
    asx_waker waker,
    asx_timer_handle *out);

/* Sets the wheel's time to `now` and removes up to `max` timers that are due, in the order of
 * (deadline, registration). Their wakers are written, not called. Further ones stay due and come
 * first in the next call. An earlier time counts as the wheel's current time.
 *
 * - Parameters: `out` has room for `max` wakers.
 * - Thread: any, one at a time.
 * - Ownership: the wakers are the caller's.
 * - Returns: how many were written; 0 for NULL, or from the functions of asx_set_allocator.
 */
size_t asx_timer_collect_expired(asx_timer_wheel *wheel, asx_time now, asx_waker *out, size_t max);

/* Cancels a timer. Its waker will not be collected.
 *
 * - Parameters: `timer` is readable.
 * - Thread: any, one at a time.
 * - Ownership: the waker's data is the caller's again.
 * - Returns: true if the timer was armed; false for one that has expired, was cancelled or never
 *   was, and for NULL.
 */
bool asx_timer_cancel(asx_timer_wheel *wheel, const asx_timer_handle *timer);

/* Registers a timer in place of an old one, which is cancelled if it is still armed. If the new
 * one is refused the old one stays; asx_timer_try_update returns the status.
 *
 * - Parameters: `old` is readable.
 * - Thread: any, one at a time.
 * - Ownership: as asx_timer_try_register.
 * - Returns: the handle of the new timer; when it is refused a copy of `*old`, or a handle that
 *   names no timer for NULL.
 */
asx_timer_handle asx_timer_update(
    asx_timer_wheel *wheel,
    const asx_timer_handle *old,
    asx_time deadline,
    asx_waker waker);

/* Registers a timer in place of an old one as asx_timer_update does, and returns a status.
 *
 * - Parameters: `old` is readable; `out` is writable, and may be `old`.
 * - Thread: any, one at a time.
 * - Ownership: as asx_timer_try_register.
 * - Returns: as asx_timer_try_register.
 */
asx_status asx_timer_try_update(
    asx_timer_wheel *wheel,
    const asx_timer_handle *old,
    asx_time deadline,
    asx_waker waker,
    asx_timer_handle *out);

/* Reads the deadline of the earliest armed timer.
 *
 * - Parameters: `out` is writable.
 * - Thread: any, one at a time.
 * - Returns: ASX_OK; ASX_E_EMPTY when no timer is armed; ASX_E_INVALID_ARGUMENT; ASX_E_REENTRANT.
 */
asx_status asx_timer_wheel_next_deadline(asx_timer_wheel *wheel, asx_time *out);

/* Returns the number of armed timers.
 *
 * - Thread: any, one at a time.
 * - Returns: how many; 0 for NULL.
 */
size_t asx_timer_wheel_len(asx_timer_wheel *wheel);

/* Wakes a task, from any thread: the function of the wakers that asx_cx_waker makes.
 *
 * - Parameters: `runtime` is a living runtime.
 * - Thread: any.
 * - Returns: nothing; a wake that asx_external_wake refuses is dropped.
 */
void asx_wake_task(void *runtime, asx_task_id task);

/* ---- The journal. ---- */

/* Reads how many events were recorded, and how many can be read.
 *
 * - Parameters: `info` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_journal_get_info(asx_runtime *rt, asx_journal_info *info);

/* Computes the digest of every event recorded so far. Takes time in proportion to the retained
 * events.
 *
 * - Parameters: `out` is writable.
 * - Returns: ASX_OK; ASX_E_EMPTY with ASX_FLAG_NO_JOURNAL, or in a build without
 *   ASX_FEATURE_JOURNAL; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_journal_digest(asx_runtime *rt, uint64_t *out);

/* Reads retained events, from the first whose number is not below `from`.
 *
 * - Parameters: `events` has room for `room` of them; `count` is writable: how many were read.
 * - Returns: ASX_OK, also when none was left; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_journal_read(
    asx_runtime *rt,
    uint64_t from,
    asx_event *events,
    size_t room,
    size_t *count);

/* Formats a retained event as a line of text.
 *
 * - Parameters: `text` has room for `room` bytes; `size` is NULL or writable: the line's
 *   length.
 * - Returns: ASX_OK; ASX_E_EMPTY when there is no such event; ASX_E_FULL when it was cut;
 *   ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_journal_line(asx_runtime *rt, uint64_t seq, char *text, size_t room, size_t *size);

/* ---- Comparing a run with a recorded one. ---- */

/* Compares the run so far with a recorded one: all events from number `from` on.
 *
 * `recorded` are events that asx_journal_read gave in an earlier run, without a gap. Keep the
 * number in `*next` and pass it as `from` the next time: then each event is compared once. Ask
 * again before more events are recorded than the journal keeps (`max_trace`). `ended` is
 * nonzero if the run is over: then recorded events that it lacks are a difference.
 *
 * - Parameters: `recorded` has `count` events, NULL if that is 0; `next` is writable: the
 *   number of the first event that was not compared; `info` is NULL or begins with its
 *   struct_size: it is written when there is a difference.
 * - Returns: ASX_OK when the runs are equal so far; ASX_E_REPLAY_MISMATCH at the first event
 *   that differs; ASX_E_TRACE_TRUNCATED when an event to be compared was not retained, or
 *   `recorded` begins after it; ASX_E_EMPTY without a journal; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_replay_compare(
    asx_runtime *rt,
    const asx_event *recorded,
    size_t count,
    uint64_t from,
    int32_t ended,
    uint64_t *next,
    asx_replay_info *info);

/* Compares the digest of the run so far with that of another run: a check that needs no trace.
 *
 * - Returns: ASX_OK when they are equal; ASX_E_DETERMINISM_VIOLATION; ASX_E_EMPTY without a
 *   journal; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_replay_check_digest(asx_runtime *rt, uint64_t recorded);

/* ---- Witnesses of a cancel. ---- */

/* Takes a witness of the progress of the task's cancel. It does not change later.
 *
 * - Parameters: `out` is writable.
 * - Ownership: the witness is the caller's until asx_witness_release.
 * - Returns: ASX_OK; ASX_E_EMPTY when the task was not cancelled; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when four for each of `max_tasks` were not
 *   released, or a pool is used up; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_task_witness(asx_runtime *rt, asx_task_id task, asx_witness_id *out);

/* Reads a witness.
 *
 * - Parameters: `info` begins with its struct_size.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_witness_get_info(asx_runtime *rt, asx_witness_id witness, asx_witness_info *info);

/* Checks whether a witness may follow another.
 *
 * - Returns: ASX_OK; ASX_E_WITNESS_TASK_MISMATCH, ASX_E_WITNESS_REGION_MISMATCH,
 *   ASX_E_WITNESS_EPOCH_MISMATCH, ASX_E_WITNESS_PHASE_REGRESSION or
 *   ASX_E_WITNESS_REASON_WEAKENED, the first in this order; ASX_E_INVALID_ARGUMENT;
 *   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
 */
asx_status asx_witness_validate(asx_runtime *rt, asx_witness_id witness, asx_witness_id next);

/* Checks whether a statement from elsewhere, such as a log or another process, may follow a
 * witness. The handles in it are not looked up.
 *
 * - Parameters: `next` begins with its struct_size.
 * - Returns: as asx_witness_validate; ASX_E_INVALID_ARGUMENT for an unknown phase or kind, or
 *   an invalid handle.
 */
asx_status asx_witness_check(asx_runtime *rt, asx_witness_id witness, const asx_witness_info *next);

/* Releases a witness. Its handle becomes stale.
 *
 * - Ownership: the witness is gone.
 * - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
 *   ASX_E_REENTRANT.
 */
asx_status asx_witness_release(asx_runtime *rt, asx_witness_id witness);

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
