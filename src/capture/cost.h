/* SPDX-License-Identifier: MIT */
/*
 * What a hit costs on this machine: measured when tracing starts, by hooking a function of cuscope
 * itself with the very programs that will run. Machines differ by a factor of five. What an agent
 * takes for a call is the time of two readings of its clock, which is measured, and a little more.
 */
#pragma once

#include <stdint.h>

#include "probe/programs.h"

struct hit_cost {
	double entry_ns;  /* an entry alone, with its record */
	double call_ns;   /* entry, return and record */
	double inside_ns; /* of a call that an agent records in its process */
};

/* Takes about ten milliseconds. On failure the fields are guesses and a negative errno
 * comes back. */
int cost_measure(struct programs *programs, bool returns, struct hit_cost *cost, struct err *err);
