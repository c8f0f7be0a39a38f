/* SPDX-License-Identifier: MIT */
/*
 * Pages of the watch tools as text: tables for people, one JSON object a page for programs, and the
 * lines of an older tool whose users have scripts that read them.
 */
#pragma once

#include "base/json.h"
#include "capture/watch/watch.h"
#include "output/svg/memory_plot.h"
#include "table/table.h"
#include "watch/places.h"

struct page_options {
	size_t width;                /* columns of the terminal, 0: do not cut lines */
	size_t top;                  /* rows of each table */
	bool stacks;                 /* every frame of a place, not only where it is */
	bool returns;                /* calls were timed */
	bool color;                  /* escapes */
	const struct places *places; /* that have taken the page; needed where it tells of memory */
};

/* All of a page. */
void page_text(const struct watch_page *page, const struct page_options *options, struct buf *out);
void page_json(const struct watch_page *page, const struct page_options *options, struct buf *out);

/*
 * The lines of gpuprobe-daemon: live allocations by process and address, launches by process and
 * kernel, failed allocations; for copies, of which the daemon prints nothing, those of gpuprobe.
 * For hooks there are none.
 */
void page_classic(const struct watch_page *page, const struct page_options *options,
                  struct buf *out);

/* ---- parts of it; private to src/watch ----------------------------------------------------- */

enum { PAGE_RETURNS = 1 }; /* what columns need: calls were timed */

struct page_out {
	const struct watch_page *page;
	const struct page_options *options;
	struct table *table;
	struct buf *text;  /* NULL: json */
	struct json *json; /* NULL: text */
};

/* The table that a page writes its rows with; its caller closes it. */
struct table *page_table(const struct page_out *out);

void page_memory_text(const struct page_out *out);
void page_memory_json(const struct page_out *out);
void page_launches(const struct page_out *out);
void page_copies(const struct page_out *out);

/* "1234 (train)", and as a cell. */
void page_add_process(struct buf *out, const struct process *process);
void page_process_cell(struct table *table, const struct process *process);

/* The keys "pid" and "process". */
void page_json_process(struct json *json, const struct process *process);

/* A count a second since the page before. */
void page_add_rate(struct buf *out, const struct watch_page *page, uint64_t now, uint64_t before);
uint64_t page_rate_thousandths(const struct watch_page *page, uint64_t now, uint64_t before);

enum page_unit { PAGE_NUMBER, PAGE_BYTES, PAGE_NS };

/*
 * "from 256 B  12 ####", a line for each power of two between the first and last that count; "..."
 * for several in a row that do not. "from 1" has what is 0, too.
 */
void page_histogram_text(const uint64_t logs[WATCH_LOGS], enum page_unit unit, struct buf *out);

/* [{"from": 256, "count": 12}, ...]: only those that count. */
void page_histogram_json(struct json *json, const char *key, const uint64_t logs[WATCH_LOGS]);

/* In a text: "... and 12 more (--top)", if there are. */
void page_note_more(const struct page_out *out, size_t rows);

/* Pages of memleak as a picture. */

/* Adds what a page says of memory, after places_take() of the same page. */
void page_plot(struct memory_plot *plot, const struct watch_page *page,
               const struct places *places);
