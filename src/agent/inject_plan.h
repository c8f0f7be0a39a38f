/* SPDX-License-Identifier: MIT */
/* The area in the target, and the steps in it: what the borrowed thread does there. */
#pragma once

#include <stdint.h>

#include "agent/inject_code.h"
#include "agent/inject_target.h"

/* The names tell what each does; those that follow a failure are further down. */
enum plan_step {
	STEP_MEMFD,
	STEP_PAIR,
	STEP_REPORT_PAIR,
	STEP_CLOSE_OURS, /* its entry is where the tracer takes descriptors, and leaves */
	STEP_CLOSE_REPORT_OURS,
	STEP_GO, /* fails if the tracer was killed before it could fill the memfd */
	STEP_DLOPEN,
	STEP_DLSYM,
	STEP_CLOSE_MEMFD,
	STEP_LOADED_AT,
	STEP_LOADED, /* fails if nobody waits any more */
	STEP_CALL,   /* the socket is the function's from here on */
	STEP_CALLED, /* a jump to STEP_TELL */
	STEP_DLERROR,
	STEP_ERROR_LENGTH,
	STEP_ERROR_TEXT,
	STEP_CLOSE_MEMFD_UNUSED,
	STEP_CLOSE_SOCKET,
	STEP_TOLD_AT,
	STEP_TELL,
	STEP_CLOSE_REPORT,
	STEP_END,
	PLAN_STEPS
};

#define PLAN_NAME_MAX 64

struct area {
	struct area_head head;
	struct step step[PLAN_STEPS];
	uint64_t go;     /* SYS_getpid once the memfd is filled */
	int32_t pair[2]; /* of these the first is ours */
	int32_t report[2];
	char name[PLAN_NAME_MAX], function[PLAN_NAME_MAX], path[128];
};

#define AREA_BYTES (320u << 10) /* with 16 KiB or more for vectors, and a stack of 256 KiB */

/*
 * What comes through the report socket, one message each. First comes the text of dlerror, or a
 * struct plan_word once the library is there. Then comes the struct step of STEP_CALL, whose last
 * arguments, which nobody uses, are such a word as well. The time is in the message, since whoever
 * receives is not to take a control message, by which the target could send descriptors.
 */
struct plan_word {
	uint64_t sent[2]; /* CLOCK_REALTIME, which all namespaces share: seconds and ns */
	uint64_t mark;
};

#define PLAN_WORD 3 /* argument of STEP_CALL where it begins */

struct plan {
	uint64_t mark; /* random */
	struct area area;
};

/* For an area at `base`. area.head.first stays 0. */
void plan_make(struct plan *plan, const struct inject_target *target,
               const struct inject_options *options, uint64_t base);

/* Address of the first step, to be written last. */
uint64_t plan_first(const struct plan *plan, const struct inject_target *target, uint64_t base);

/* Whether this processor's vectors fit. */
bool plan_fits(void);
