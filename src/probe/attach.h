/* SPDX-License-Identifier: MIT */
/*
 * Attaching: a set of points in one file, hooked together by the mechanism that the programs were
 * loaded for. Knows nothing of what the points mean; the cookie carries that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/programs.h"

struct attach_point {
	uint64_t offset;  /* in the file */
	uint64_t cookie;  /* wire.h */
	uint64_t counter; /* in the file: what a marker is turned on by; 0: it has none */
	int error; /* out: 0, or the negative errno for which this point could not be hooked */
};

struct attachment;

/*
 * Hooks `points` of the file behind `fd` (still the caller's) for every process. Places that the
 * kernel refuses get their error and do not keep the others from being hooked. `returns` false
 * leaves returns alone (a session is told by the hooks' modes instead). With `until_end` what is
 * left when end_is_near() (base/later.h) has the error -EINTR. Fails only when nothing could be
 * hooked.
 */
int attach(struct programs *programs, int fd, struct attach_point *points, size_t count,
           bool returns, bool until_end, struct attachment **attachment, struct err *err);

/* The same for hooks of wire_hooks.h, which have programs of their own; until the end. */
int attach_own(struct programs *programs, int fd, struct attach_point *points, size_t count,
               bool returns, struct attachment **attachment, struct err *err);

/* How long it took to make, which is about what it takes to unhook; of NULL nothing. */
uint64_t attachment_took_ns(const struct attachment *attachment);

/* Unhooks returns where they are apart from entries; sessions have modes for that. */
void attachment_drop_returns(struct attachment *attachment);

/* Unhooks; NULL is allowed. */
void attachment_free(struct attachment *attachment);

/* The same, but nobody waits for the kernel's grace periods (later.h). */
void attachment_free_later(struct attachment *attachment);
