/* SPDX-License-Identifier: MIT */
/*
 * Takes the probes of a module away while all processes that have it mapped are recorded inside,
 * and puts them back when that is over. See docs/decisions.md, 25.
 *
 * It is known who has it mapped: all targets are looked at once (the sweep), and whoever maps it
 * later is told of (modules_watch). Children of a process that uses CUDA are left out: it does not
 * work there before they execute a program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * When the probes of a module go and come back: its state, without what is done about it.
 *
 * They go when nothing changed for a while, since to put them back takes 20 to 50 ms. Where that
 * happens again and again they wait longer each time.
 */

enum away_state {
	AWAY_THERE,
	AWAY_WATCHED, /* who maps the module is told of from now on; is anyone else in need of it?
	               */
	AWAY_GONE,
};

enum away_step {
	AWAY_NOTHING,
	AWAY_WATCH,
	AWAY_LOOK, /* whether they can go */
	AWAY_RETURN,
};

struct away {
	enum away_state state;
	uint64_t unsettled_ns; /* when something changed last */
	uint64_t settle_ns;    /* how long after that probes may go */
	uint64_t look_ns;      /* when to look next */
	uint64_t every_ns;     /* between looks */
	uint64_t gone_ns;
};

void away_begin(struct away *away, uint64_t now_ns);

/* `covered`: all who are known to use it are recorded inside. What is to be done now. */
enum away_step away_next(struct away *away, bool covered, uint64_t now_ns);

/* It was done. */
void away_watched(struct away *away, uint64_t now_ns);
void away_busy(struct away *away,
               uint64_t now_ns); /* somebody is in a call: the next look is later */
void away_gone(struct away *away, uint64_t now_ns);
void away_returned(struct away *away, uint64_t now_ns);
