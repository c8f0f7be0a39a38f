/* SPDX-License-Identifier: MIT */
/*
 * The life of a `cuscope top`: what is drawn when, what keys do, the one page of --once. Fed by the
 * capture through its consumers; no thread of its own but the one that asks the GPUs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/capture.h"

struct top_screen_options {
	const char *target; /* "all processes"; kept, not copied */
	uint64_t interval_ns;
	bool once;   /* one page, on standard output, at the end */
	bool json;   /* as JSON */
	bool hooks;  /* there are some of one's own */
	bool why;    /* the account of the last ten seconds, of a capture that records for `why`, */
	bool gpu;    /* whose GPU times are of all the time */
	bool beside; /* the same account with less memory and processor (top_why.h) */
	/* NULL: pages are drawn on the terminal. Else each goes there, as JSON of some 256 KiB at
	 * most, and no terminal is touched. NULL goes there where none was made, since it was not
	 * wanted; one that becomes so is made at once. */
	void (*show)(void *data, const char *json);
	/* With `why`: the account, as an object in one line, each time that it is another one; and
	 * whether it is time for another process to make it (top_why.h). */
	void (*show_account)(void *data, const char *json, bool worn);
	bool (*wanted)(void *data);
	void *data;
	void (*say)(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* on stderr */
};

struct top_screen;

struct top_screen *top_screen_new(const struct top_screen_options *options);
void top_screen_free(struct top_screen *screen);

#define TOP_SCREEN_CONSUMERS 3

/* How many consumers, in this order; top_screen_free() frees them. */
size_t top_screen_consumers(struct top_screen *screen,
                            struct consumer *consumers[TOP_SCREEN_CONSUMERS]);

/* Where losses and costs come from, and who is asked for snapshots; before capture_run. */
void top_screen_measure(struct top_screen *screen, struct capture *capture);

/* For capture_options: all take the struct top_screen. */
bool top_screen_quits(void *screen);
void top_screen_notice(void *screen, const char *text);
void top_screen_snapshot(void *screen, const struct run_info *run);
