/* SPDX-License-Identifier: MIT */
/*
 * Pages of the live tools as text: tables for people, one JSON object a page for programs, and the
 * lines of an older tool whose users have scripts that read them.
 */
#ifndef CUSCOPE_LIVE_LIVE_H
#define CUSCOPE_LIVE_LIVE_H

#include "live/places.h"
#include "base/json.h"
#include "capture/watch/watch.h"
#include "table/table.h"

struct live_options {
	size_t width;                /* columns of the terminal, 0: do not cut lines */
	size_t top;                  /* rows of each table */
	bool stacks;                 /* every frame of a place, not only where it is */
	bool returns;                /* calls were timed */
	bool color;                  /* escapes */
	const struct places *places; /* that have taken the page; needed where it tells of memory */
};

/* All of a page. */
void live_text(const struct watch_page *page, const struct live_options *options, struct buf *out);
void live_json(const struct watch_page *page, const struct live_options *options, struct buf *out);

/*
 * The lines of gpuprobe-daemon: live allocations by process and address, launches by process and
 * kernel, failed allocations; for copies, of which the daemon prints nothing, those of gpuprobe.
 */
void live_classic(const struct watch_page *page, const struct live_options *options,
                  struct buf *out);

/* ---- parts of it; private to src/live ------------------------------------------------------ */

enum { LIVE_RETURNS = 1 }; /* what columns need: calls were timed */

struct live_out {
	const struct watch_page *page;
	const struct live_options *options;
	struct table *table;
	struct buf *text;  /* NULL: json */
	struct json *json; /* NULL: text */
};

/* The table that a page writes its rows with; its caller closes it. */
struct table *live_table(const struct live_out *out);

void live_memory_text(const struct live_out *out);
void live_memory_json(const struct live_out *out);
void live_memory_failures(const struct live_out *out);
void live_launches(const struct live_out *out);
void live_copies(const struct live_out *out);

/* "1234 (train)", and as a cell. */
void live_add_process(struct buf *out, const struct process *process);
void live_process_cell(struct table *table, const struct process *process);

/* The keys "pid" and "process". */
void live_json_process(struct json *json, const struct process *process);

/* A count a second since the page before. */
void live_add_rate(struct buf *out, const struct watch_page *page, uint64_t now, uint64_t before);
uint64_t live_rate_thousandths(const struct watch_page *page, uint64_t now, uint64_t before);

enum live_unit { LIVE_NUMBER, LIVE_BYTES, LIVE_NS };

/*
 * "from 256 B  12 ####", a line for each power of two between the first and last that count; "..."
 * for several in a row that do not. "from 1" has what is 0, too.
 */
void live_histogram_text(const uint64_t logs[WATCH_LOGS], enum live_unit unit, struct buf *out);

/* [{"from": 256, "count": 12}, ...]: only those that count. */
void live_histogram_json(struct json *json, const char *key, const uint64_t logs[WATCH_LOGS]);

/* In a text: "... and 12 more (--top)", if there are. */
void live_note_more(const struct live_out *out, size_t rows);

#endif
