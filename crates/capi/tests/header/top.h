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
