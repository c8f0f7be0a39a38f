/* SPDX-License-Identifier: MIT */
/*
 * A page: one self-contained html file of a trace, that any browser opens without a network. It
 * begins with what was missed and with the answer of `why`; then come a timeline and tables.
 *
 * The file is an index in JSON, the script that shows it (src/page/js), and blocks of rows, each
 * compressed and in base64, or, where they are many, in words of UTF-16 (wide.h). The index says
 * what the columns of a block are, so that the script knows no kind of event; tables are the
 * reports, as src/table has them. Memory does not grow with the number of events.
 *
 * Of two recordings a page has two of all these (struct page_pair).
 *
 * A policy in the file's head (Content-Security-Policy) lets nothing run but that script, by its
 * hash, and nothing be asked of anywhere. What the trace says is data: in JSON, with no `<` in it.
 */
#ifndef CUSCOPE_PAGE_PAGE_H
#define CUSCOPE_PAGE_PAGE_H

#include "analysis/memory.h"
#include "output/describe.h"
#include "output/format.h"
#include "output/who.h"
#include "page/blocks.h"
#include "report/report.h"

/* ---- rows of events ----------------------------------------------------------------------------
 */

struct page_rows;

struct page_rows *page_rows_new(struct page_blocks *blocks, const struct sink *sink);
void page_rows_free(struct page_rows *rows);

/* An event that is wanted. Of all processes, threads and streams it makes the tracks. */
void page_rows_event(struct page_rows *rows, const struct event *event);

/* Live memory, for each call whether it is shown or not. */
void page_rows_memory(struct page_rows *rows, const struct event *event);

/* What is held at the end is held until then. */
void page_rows_memory_end(struct page_rows *rows, uint64_t end_ns);

/* Part by part of the accounts' time what it consists of; nothing where there are none. First from
 * the answer to a file, then from there to rows. */
void page_windows_write(struct consumer *why, FILE *to);
void page_rows_account(struct page_rows *rows, FILE *windows);

/* At the end: blocks of the stacks that rows have; then members of the index: "processes",
 * "stacks", "frames". */
void page_rows_end(struct page_rows *rows);
void page_rows_json(const struct page_rows *rows, const struct run_info *run, struct json *json);

/* ---- tables ------------------------------------------------------------------------------------
 */

#define PAGE_TABLE_ROWS 300 /* of a table; its last note says how many there are more */

struct page_tables;

/* All reports but those that have a row for each event, and those that say it again. */
struct page_tables *page_tables_new(const struct sink *sink, struct err *err);
void page_tables_free(struct page_tables *tables);

/*
 * Where there are processors enough, two processes of their own make them, which read the file as
 * this one does: true in those, which have no rows, and end in page_tables_finish(). Before their
 * consumers are asked for.
 */
bool page_tables_apart(struct page_tables *tables);

/* Then: whether this process needs to be told which call asked for what ran. The account of time
 * finds that by itself. */
bool page_tables_join(const struct page_tables *tables);

/* Those of this process. */
struct consumer *const *page_tables_consumers(struct page_tables *tables, size_t *n);

/* The account of time, with its answer after the end; NULL: another process has it. */
struct consumer *page_tables_why(const struct page_tables *tables);

/* The end of the consumers, and of processes. A negative errno with a sentence. */
int page_tables_finish(struct page_tables *tables, const struct run_info *run, struct err *err);

/* After that. Members of the index: "reports"; files to be copied, each members of an object of
 * reports, NULL behind the last; and what page_windows_write() wrote. */
void page_tables_json(const struct page_tables *tables, const char *path, struct json *json);
FILE *page_tables_file(const struct page_tables *tables, size_t i);
FILE *page_tables_windows(const struct page_tables *tables);

/* After the end: all but the files and the names of the reports. */
void page_tables_forget(struct page_tables *tables);

/* ---- two recordings ----------------------------------------------------------------------------
 */

/*
 * A page on which two recordings stand beside each other, below what differs (report/diff). Of each
 * the pair has what a page of one has: an index, "index" and "index-other", and blocks, whose
 * numbers stand behind "b" and "other-b"; an element "pair" has the tables of what differs. A sink
 * is made for each with sink_options.pair, first of A; B's end writes all. Both files that are read
 * stay open until the pair is freed.
 */
struct page_pair;

struct page_pair_options {
	const char *const *names; /* what is compared, as diff_new() has it, beside the steps */
	size_t n_names;
	size_t top; /* rows of a table; 0: as many as those of reports have */
	struct report_options read;
};

int page_pair_new(const struct page_pair_options *options, struct page_pair **pair,
                  struct err *err);
void page_pair_free(struct page_pair *pair);

/* ---- what pages have in common ------------------------------------------------------------------
 */

/* JSON within a page: without a `<`, by which it would end. */
void page_add_json(struct buf *out, const char *text, size_t len);

/* ---- a page that is live -----------------------------------------------------------------------
 */

enum page_live {
	PAGE_LIVE_TOP,   /* of `top --web`: asks for /live */
	PAGE_LIVE_AGENT, /* of the node agent: asks for /metrics */
};

/* Member "causes": the answer has words for programs, rows of the account those for people. */
void page_json_causes(struct json *json, const char *key);

/* Its html, and its Content-Security-Policy, as a header. */
void page_live(enum page_live which, struct buf *html, struct buf *policy);

/* ---- what is in the program (embedded.S) ---------------------------------------------------
 */

extern const char report_page_script[], report_page_script_end[], report_page_style[],
	report_page_style_end[];
extern const char report_live_script[], report_live_script_end[], report_live_script_hash[];
extern const char report_agent_script[], report_agent_script_end[], report_agent_script_hash[];
extern const char report_profile_script[], report_profile_script_end[],
	report_profile_script_hash[];
extern const char report_flame_script[], report_flame_style[];         /* of a picture; texts */
extern const char report_page_script_hash[], report_page_style_hash[]; /* SHA-256 in base64 */

#endif
