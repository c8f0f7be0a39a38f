/* SPDX-License-Identifier: MIT */
/*
 * Threads that targets wait for: by whom they were woken, and how long they had been blocked until
 * then. Processes of those that matter, and are no targets, are joined to them (session_wakers.c):
 * what they did meanwhile is what the wait was for.
 */
#ifndef CUSCOPE_CAPTURE_WAKERS_H
#define CUSCOPE_CAPTURE_WAKERS_H

#include <stdbool.h>
#include <stdint.h>

#define WAKERS_MATTER_NS 50000000ull /* of blocked time that a thread ended, in all */

struct wakers;

struct wakers *wakers_new(void);
void wakers_free(struct wakers *wakers);

/*
 * `tid` woke a thread of a target that was blocked for so long. True once for each thread, when it
 * begins to matter. Memory is bounded: where too many are met, all begin anew.
 */
bool wakers_note(struct wakers *wakers, uint32_t tid, uint64_t blocked_ns);

#endif
