/*
 * asx: structured concurrency for C. Explicit, bounded, deterministic.
 *
 * A runtime is created from a configuration and stepped by the program; it has no threads, and
 * shares nothing with other runtimes but where memory comes from (asx_set_allocator,
 * ASX_POOLS_MOST). Tasks are callbacks, polled when something has woken them. Every task lives in a
 * region; a region closes when everything inside is over. Cancelling is asking: a task sees it at
 * its next checked call and cleans up. docs/C.md is the guide.
 *
 * Rules for every function, unless it says otherwise:
 *  - It answers an asx_status; ASX_OK is 0. A refusal changes nothing.
 *  - `rt` is NULL (ASX_INVALID_ARGUMENT) or a living runtime. It is called from the thread that
 *    created the runtime, or was given it (asx_runtime_transfer), or answers
 *    ASX_AFFINITY_VIOLATION. asx_external_wake and asx_thread_number are the exceptions.
 *  - Handles may be anything: a wrong type, or a state the thing cannot have had, is
 *    ASX_INVALID_ARGUMENT, a stale or forged one ASX_STALE_HANDLE. They are numbers of one runtime, and may name another thing in another.
 *  - Where several things are wrong the order is: arguments and types of handles, thread, the place
 *    it is called from, a pool that is used up, staleness, states, limits.
 *  - It may be called from inside a poll callback, but for asx_step, asx_run_until_idle and
 *    asx_runtime_destroy. From hooks, drop callbacks and the functions of asx_set_allocator nothing
 *    may be called but asx_external_wake. Both are ASX_REENTRANT, and about the same runtime:
 *    another one may be used everywhere.
 *  - Callbacks and hooks return. To leave one by longjmp or an exception is forbidden; who has done
 *    so calls asx_runtime_recover before anything else.
 *  - A pointer to a struct that leads with struct_size is good for as many bytes as that says.
 *  - Memory that the allocator does not give ends the process, but for that of pools and channels,
 *    which is ASX_RESOURCE_EXHAUSTED.
 *  - ASX_INTERNAL means that asx itself is broken; every later call answers it too.
 *
 * This file is made from crates/capi/src. Do not edit it.
 */
#ifndef ASX_H
#define ASX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A runtime. */
typedef struct asx_runtime asx_runtime;
