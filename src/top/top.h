/* SPDX-License-Identifier: MIT */
/*
 * What `cuscope top` shows: a snapshot of the counts as lines of a screen, and what keys
 * change in that. Nothing here reads a clock, a key or a terminal, so a test sees what a user sees.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "top/top_counts.h"
#include "gpus/gpus.h"
#include "top/terminal.h"

#define TOP_COLUMNS 80 /* the least that a screen must have */
#define TOP_ROWS    24

enum top_table {
	TOP_PROCESSES,
	TOP_KERNELS, /* these and the following are of the process that is opened */
	TOP_FUNCTIONS,
	TOP_STREAMS,
	TOP_MEMORY,
	TOP_TRANSFERS,
	TOP_HOOKS,     /* the last of these */
	TOP_ALL_HOOKS, /* of all processes */
	TOP_TABLES,
};

/* It is one of the process that is opened. */
static inline bool top_is_detail(enum top_table table)
{
	return table >= TOP_KERNELS && table <= TOP_HOOKS;
}

/* All that a page is made of. */
struct top_page {
	const struct top_snapshot *snapshot;
	const struct gpus_sample *gpus; /* NULL: not known yet */
	const struct run_info *who;     /* its identities: who processes are; NULL: not known */
	const char *target;             /* "all processes" */
	uint64_t lost[LOST_COUNT];
	bool missed;             /* what was is told below the page: in the end */
	double overhead_percent; /* of the busiest thread's time */
	double own_percent;      /* cuscope's own, of one CPU */
	bool hooks;              /* there are some of one's own: tables of them */
	double estimate_scale;   /* above 1: measured in windows; the page is of what they saw */
	const char *notice;      /* the latest one while it is new, else NULL */
	const char
		*account; /* of the last ten seconds: what to change first; NULL: not asked for */
	uint32_t account_pid; /* of the process that this is of; 0: of none */
};

struct top_order {
	size_t column;
	bool backwards;
};

/* What the user has chosen. top_view_init() sets what is right at first. */
struct top_view {
	enum top_table table;
	uint32_t process; /* id of the one that is opened, where the table is a detail */
	struct top_order order[TOP_TABLES];
	bool any_selected;       /* a row of the processes */
	uint32_t selected;       /* its process id */
	size_t first;            /* row at the top of the table, where not all rows fit */
	size_t body_rows;        /* rows of the table on the last page */
	size_t columns;          /* of the last page */
	bool gpu_times;          /* the last page had their columns */
	bool hooks;              /* and their tables */
	bool paused, help, keys; /* keys: a line of them at the bottom, and a selection */
};

void top_view_init(struct top_view *view);

/* Columns 0: as wide as names are; rows 0: as long as it takes. */
void top_render(const struct top_page *page, struct top_view *view, size_t rows, size_t columns,
                struct screen *screen);

/* Keys that are no characters. */
enum top_key {
	TOP_KEY_UP = 0x110000, /* behind the last character */
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_BACKWARD_TAB,
};

enum top_action {
	TOP_NOTHING, /* the key means nothing here */
	TOP_REDRAW,
	TOP_RESET, /* counts are to begin anew */
	TOP_QUIT,
};

/* Of a process; NULL: not known. */
const char *top_who(const struct top_page *page, const struct top_process *process,
                    enum run_identity_word word);

enum top_action top_key(struct top_view *view, const struct top_page *page, int key);

/*
 * The whole page as one JSON object, with the details that the snapshot has. `most_bytes` above 0:
 * of processes those that call most, run most on GPUs or hold most memory, of each the functions,
 * kernels and streams with most time, and numbers of what is left out, so that it is not longer.
 */
void top_json(const struct top_page *page, const struct run_info *run, size_t most_bytes,
              struct buf *out);
