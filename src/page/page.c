// SPDX-License-Identifier: MIT
#include "page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "analysis/missed.h"
#include "base/array.h"
#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "page/wide.h"
#include "report/diff/diff.h"
#include "report/why.h"

#define COPIED 65536               /* bytes at a time */
#define WIDE   ((uint64_t)8 << 20) /* bytes of blocks: of more, the page is written wide */

struct page {
	struct sink sink; /* first */
	struct page_blocks *blocks;
	struct page_rows *rows;
	struct page_tables *tables;
	struct consumer *const *reports, *const *compared; /* compared: of the pair */
	size_t n_reports, n_compared;
	/* From its end on: */
	struct buf index;    /* its begin; the tables and the blocks stand behind it */
	struct buf text;     /* of the one that writes: what comes next, in UTF-8 */
	bool wide;           /* as wide.h says */
	bool tabled;         /* it has tables, all of them */
	struct run_info run; /* as long as what was read */
	struct page_pair *pair;
	enum diff_side side;
};

struct page_pair {
	struct diff *diff;
	size_t top;
	struct page *sides[DIFF_SIDES];
	size_t n;
};

/* ---- what comes ------------------------------------------------------------------------------ */

static int page_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct page *page = (struct page *)self;
	int rc;

	page->blocks = page_blocks_new(page->side == DIFF_A ? "b" : "other-b", err);
	if (!page->blocks)
		return err->code;
	page->tables = page_tables_new(&page->sink, err);
	if (!page->tables)
		return err->code;
	if (!page->sink.options.apart || !page_tables_apart(page->tables))
		page->rows = page_rows_new(page->blocks, &page->sink);
	page->sink.joins = page_tables_join(page->tables);
	page->reports = page_tables_consumers(page->tables, &page->n_reports);
	if (page->pair) {
		diff_share(page->pair->diff, page->side, page_tables_why(page->tables),
		           page->sink.work);
		page->compared = diff_consumers(page->pair->diff, page->side, &page->n_compared);
	}
	rc = consumers_begin(page->reports, page->n_reports, run, err);
	return rc ? rc : consumers_begin(page->compared, page->n_compared, run, err);
}

/* What it will have. Of two, the first has half of the room, the second what the first leaves. */
static uint64_t page_bytes(const struct page *page)
{
	uint64_t bytes = page_blocks_bytes(page->blocks);

	if (!page->pair)
		return bytes;
	return bytes + page_blocks_bytes(page->pair->sides[DIFF_A]->blocks);
}

static int page_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct page *page = (struct page *)self;
	int rc;

	if (sink_is_over(&page->sink, event))
		return 0;
	if (page->rows && event->type != EVENT_METRICS)
		page_rows_memory(page->rows, event);
	if (page->rows && page->sink.wanted)
		page_rows_event(page->rows, event);
	page->sink.lines.elsewhere = page_bytes(page);
	rc = consumers_event(page->reports, page->n_reports, event, err);
	return rc ? rc : consumers_event(page->compared, page->n_compared, event, err);
}

static const char *page_trace(const struct page *page)
{
	return page->sink.options.trace ? page->sink.options.trace : "FILE";
}

/* ---- html ------------------------------------------------------------------------------------ */

/* What stands in an element of the page, of which nothing may look like its end. */
void page_add_json(struct buf *out, const char *text, size_t len)
{
	const char *end = text + len, *bracket;

	while ((bracket = memchr(text, '<', (size_t)(end - text)))) {
		buf_add(out, text, (size_t)(bracket - text));
		buf_puts(out, "\\u003c");
		text = bracket + 1;
	}
	buf_add(out, text, (size_t)(end - text));
}

/* What is in its text goes where the page goes; what is no whole character yet stays. */
static int page_put(struct page *page, struct err *err)
{
	struct buf *text = &page->text, *out = &page->sink.lines.pending;
	size_t taken = text->len;

	if (!text->len)
		return 0;
	if (page->wide)
		taken = page_wide_add(out, text->data, text->len);
	else
		buf_add(out, text->data, text->len);
	memmove(text->data, text->data + taken, text->len - taken);
	text->len -= taken;
	return lines_added(&page->sink.lines, err);
}

static int copy_failed(FILE *from, struct err *err)
{
	return ferror(from)
	               ? err_set(err, EIO, "cannot read a temporary file back: %s", strerror(errno))
	               : 0;
}

static int page_copy_json(struct page *page, FILE *from, struct err *err)
{
	char piece[COPIED];
	size_t len;
	int rc = 0;

	while (!rc && (len = fread(piece, 1, sizeof(piece), from)) > 0) {
		page_add_json(&page->text, piece, len);
		rc = page_put(page, err);
	}
	return rc ? rc : copy_failed(from, err);
}

/* Each is a line: an element with base64 in it. */
static int page_copy_blocks(struct page *page, FILE *from, struct err *err)
{
	AT_END(at_end_free) char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int rc = 0;

	while (!rc && (len = getline(&line, &room, from)) > 0) {
		char *begin = strchr(line, '>'), *end = begin ? strchr(begin, '<') : NULL;

		buf_add(&page->text, line,
		        page->wide && end ? (size_t)(begin + 1 - line) : (size_t)len);
		rc = page_put(page, err);
		if (rc || !page->wide || !end)
			continue;
		page_wide_block(&page->sink.lines.pending, begin + 1, (size_t)(end - begin - 1));
		buf_puts(&page->text, end);
		rc = page_put(page, err);
	}
	return rc ? rc : copy_failed(from, err);
}

/* Of two recordings each has the name that tells them apart; the page that of its file. */
static void page_add_title(const struct page *page, struct buf *out, bool of_all)
{
	const char *path = page->sink.options.path ? page->sink.options.path : "a trace";
	const char *slash = strrchr(path, '/');

	if (page->pair && !of_all)
		buf_puts(out, page_trace(page));
	else
		buf_puts(out, slash ? slash + 1 : path);
}

static void page_add_head(struct page *page)
{
	AT_END(buf_free) struct buf title = { 0 };
	struct buf *out = &page->text;

	page_add_title(page, &title, true);
	if (page->wide)
		page_wide_begin(&page->sink.lines.pending);
	buf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
	buf_puts(out, page->wide ? "" : "<meta charset=\"utf-8\">\n");
	buf_puts(out, "<meta name=\"viewport\" content=\"width=device-width\">\n"
	              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	              "base-uri 'none'; form-action 'none'; style-src 'sha256-");
	buf_puts(out, report_page_style_hash);
	buf_puts(out, "'; script-src 'sha256-");
	buf_puts(out, report_page_script_hash);
	buf_puts(out, "'\">\n<title>");
	xml_add_text(out, title.data);
	buf_puts(out, "</title>\n<style>");
	buf_add(out, report_page_style, (size_t)(report_page_style_end - report_page_style));
	buf_puts(out, "</style>\n</head>\n<body>\n<div id=\"page\"><noscript>This page is shown by "
	              "a script, which this browser does not run.</noscript></div>\n");
}

/* ---- the index ------------------------------------------------------------------------------- */

static void page_json_gpus(const struct run_info *run, struct json *json)
{
	json_open(json, "gpus", '[');
	for (size_t i = 0; i < run->n_gpus; i++) {
		json_open(json, NULL, '{');
		json_string(json, "name", run->gpus[i].name);
		json_string(json, "uuid", run->gpus[i].uuid);
		json_u64(json, "memory_bytes", run->gpus[i].memory_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void page_json_run(const struct run_info *run, struct json *json)
{
	const struct {
		const char *key, *value;
	} known[] = { { "command", run->command },
		      { "hostname", run->hostname },
		      { "kernel", run->kernel_release },
		      { "driver", run->driver_version } };
	char begin[32];

	snprintf(begin, sizeof(begin), "%llu",
	         (unsigned long long)(run->begin_ns + (uint64_t)run->realtime_offset_ns));
	json_open(json, "run", '{');
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		json_string_if(json, known[i].key, known[i].value);
	}
	json_string(json, "begin_ns_unix", begin); /* a number of that size is none in JavaScript */
	json_u64(json, "duration_ns",
	         run->end_ns > run->begin_ns ? run->end_ns - run->begin_ns : 0);
	json_u64(json, "cpus", run->cpus);
	json_bool(json, "gpu_times", run->gpu_times);
	page_json_gpus(run, json);
	json_close(json, '}');
}

void page_json_causes(struct json *json, const char *key)
{
	json_open(json, key, '{');
	for (int cause = 0; cause < ACCOUNT_CAUSES; cause++) {
		json_open(json, account_cause_name((enum account_cause)cause), '{');
		json_string(json, "text", account_cause_text((enum account_cause)cause));
		json_string(json, "about", account_cause_about((enum account_cause)cause));
		json_close(json, '}');
	}
	json_close(json, '}');
}

#define MISSES_TOLD 20

static void page_json_misses(const struct run_info *run, struct json *json)
{
	for (size_t i = 0; i < run->n_misses && i < MISSES_TOLD; i++) {
		const struct miss *miss = &run->misses[i];
		AT_END(buf_free) struct buf text = { 0 };

		if (missed_by_choice(miss->kind))
			continue;
		if (miss->name)
			buf_printf(&text, "%s ", miss->name);
		if (miss->lib)
			buf_printf(&text, "(%s) ", miss->lib);
		if (miss->pid)
			buf_printf(&text, "of process %u ", miss->pid);
		buf_printf(&text, "%s%s", text.len ? "- " : "", miss->why ? miss->why : "");
		json_string(json, NULL, text.data);
	}
	if (run->n_misses > MISSES_TOLD)
		json_string(json, NULL, "and more: 'cuscope info' has them all");
}

static void page_json_missed(const struct page *page, const struct run_info *run, struct json *json)
{
	AT_END(buf_free) struct buf file = { 0 }, brief = { 0 };
	uint64_t rows = page_blocks_left_out(page->blocks);

	json_open(json, "missed", '[');
	if (missed_of_file(run, &file))
		json_string(json, NULL, file.data);
	if (missed_brief(&brief, run)) {
		buf_puts(&brief, ", while it was recorded");
		json_string(json, NULL, brief.data);
	}
	page_json_misses(run, json);
	if (rows) {
		buf_reset(&brief);
		buf_printf(&brief, "the timeline has no room for %llu events of further tracks",
		           (unsigned long long)rows);
		json_string(json, NULL, brief.data);
	}
	json_close(json, ']');
}

/* Its beginning; "tables" and "blocks" are copied behind it. */
static void page_make_index(struct page *page, const struct run_info *run)
{
	AT_END(buf_free) struct buf text = { 0 }, title = { 0 };
	struct json json = { .out = &text };

	page_add_title(page, &title, false);
	json_open(&json, NULL, '{');
	json_u64(&json, "version", 1);
	json_string(&json, "made_by", "cuscope " CUSCOPE_VERSION);
	json_string(&json, "title", title.data);
	page_json_run(run, &json);
	if (page->pair)
		json_bool(&json, "pair", true);
	page_json_causes(&json, "causes");
	page_json_missed(page, run, &json);
	page_rows_json(page->rows, run, &json);
	page_blocks_json(page->blocks, &json);
	page_tables_json(page->tables, page_trace(page), &json);
	page_add_json(&page->index, text.data, text.len);
}

/* An object of what all reports have. */
static int page_copy_tables(struct page *page, const struct page_tables *tables, struct err *err)
{
	FILE *file;
	int rc = 0;

	buf_putc(&page->text, '{');
	for (size_t i = 0; !rc && (file = page_tables_file(tables, i)); i++) {
		buf_puts(&page->text, i ? ",\n" : "");
		rc = page_copy_json(page, file, err);
	}
	buf_puts(&page->text, "\n}");
	return rc;
}

/* What stands behind its beginning is in files, which may be long. `page` is the one that writes.
 */
static int page_write_index(struct page *page, const struct page *of, struct err *err)
{
	struct buf *out = &page->text;
	int rc;

	buf_printf(out, "<script type=\"application/json\" id=\"%s\">",
	           of->side == DIFF_A ? "index" : "index-other");
	buf_add(out, of->index.data, of->index.len);
	buf_puts(out, ",\n\"tables\":");
	rc = page_copy_tables(page, of->tables, err);
	if (rc)
		return rc;
	buf_puts(out, ",\n\"blocks\":[");
	rc = page_copy_json(page, page_blocks_meta(of->blocks), err);
	buf_puts(out, "]}</script>\n");
	return rc;
}

static void page_add_script(struct buf *out)
{
	buf_puts(out, "<script>");
	buf_add(out, report_page_script, (size_t)(report_page_script_end - report_page_script));
	buf_puts(out, "</script>\n");
}

/* What is in it but for blocks takes twice as much then: not where it may not be that long. */
static void page_choose_width(struct page *page)
{
	page->wide = page_bytes(page) > WIDE && page_bytes(page) < lines_most() / 2;
}

static int page_write_end(struct page *page, struct err *err)
{
	buf_puts(&page->text, "</body>\n</html>\n");
	return page_put(page, err);
}

static int page_write(struct page *page, struct err *err)
{
	int rc;

	page_choose_width(page);
	page_add_head(page);
	rc = page_write_index(page, page, err);
	if (rc)
		return rc;
	page_add_script(&page->text);
	rc = page_copy_blocks(page, page_blocks_data(page->blocks), err);
	return rc ? rc : page_write_end(page, err);
}

/* ---- two recordings -------------------------------------------------------------------------- */

/* Its tables are copied behind it. */
static void pair_make_index(const struct page_pair *pair, struct buf *out)
{
	AT_END(buf_free) struct buf text = { 0 }, command = { 0 };
	struct json json = { .out = &text };
	uint64_t first_ns[DIFF_SIDES];

	buf_printf(&command, "cuscope diff %s %s", page_trace(pair->sides[DIFF_A]),
	           page_trace(pair->sides[DIFF_B]));
	json_open(&json, NULL, '{');
	json_u64(&json, "version", 1);
	json_string(&json, "command", command.data);
	if (diff_first_steps(pair->diff, first_ns)) {
		json_open(&json, "first_steps_ns", '[');
		for (int side = 0; side < DIFF_SIDES; side++)
			json_u64(&json, NULL, first_ns[side]);
		json_close(&json, ']');
	}
	page_add_json(out, text.data, text.len);
}

static int pair_write_tables(const struct page_pair *pair, struct page *page, struct err *err)
{
	const struct run_info *const runs[DIFF_SIDES] = { &pair->sides[DIFF_A]->run,
		                                          &pair->sides[DIFF_B]->run };
	struct table_options options = { .form = TABLE_FORM_HTML,
		                         .out = page_temporary(err),
		                         .top = pair->top };
	int rc = options.out ? diff_print(pair->diff, runs, &options, err) : err->code;

	if (!rc) {
		buf_puts(&page->text, "<script type=\"application/json\" id=\"pair\">");
		pair_make_index(pair, &page->text);
		buf_puts(&page->text, ",\n\"tables\":");
		rewind(options.out);
		rc = page_copy_json(page, options.out, err);
		buf_puts(&page->text, "}</script>\n");
	}
	if (options.out)
		fclose(options.out);
	return rc;
}

static int pair_write(const struct page_pair *pair, struct page *page, struct err *err)
{
	int rc = 0;

	if (!pair->sides[DIFF_A]->tabled)
		return err_set(err, ENODATA, "%s was not read", page_trace(pair->sides[DIFF_A]));
	page_choose_width(page);
	page_add_head(page);
	for (int side = 0; side < DIFF_SIDES && !rc; side++)
		rc = page_write_index(page, pair->sides[side], err);
	if (!rc)
		rc = pair_write_tables(pair, page, err);
	page_add_script(&page->text);
	for (int side = 0; side < DIFF_SIDES && !rc; side++)
		rc = page_copy_blocks(page, page_blocks_data(pair->sides[side]->blocks), err);
	return rc ? rc : page_write_end(page, err);
}

int page_pair_new(const struct page_pair_options *options, struct page_pair **pair, struct err *err)
{
	const char **names = xcalloc(options->n_names + 1, sizeof(*names));
	struct page_pair *made = xcalloc(1, sizeof(*made));
	int rc;

	names[0] = diff_name(0); /* steps are always compared */
	for (size_t i = 0; i < options->n_names; i++)
		names[1 + i] = options->names[i];
	made->top = options->top ? options->top : PAGE_TABLE_ROWS;
	rc = diff_new(names, options->n_names ? options->n_names + 1 : 0, &options->read,
	              &made->diff, err);
	free(names);
	*pair = made;
	if (rc) {
		page_pair_free(made);
		*pair = NULL;
	}
	return rc;
}

static void page_drop(struct page *page)
{
	page_tables_free(page->tables);
	page_rows_free(page->rows);
	page_blocks_free(page->blocks);
	buf_free(&page->index);
	buf_free(&page->text);
	free(page);
}

void page_pair_free(struct page_pair *pair)
{
	diff_free(pair->diff);
	for (size_t i = 0; i < pair->n; i++)
		page_drop(pair->sides[i]);
	free(pair);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* All of it but its file: what rows and tables needed is no more. */
static int page_settle(struct page *page, const struct run_info *run, struct err *err)
{
	const struct sink_options *options = &page->sink.options;
	const struct report_options read = { .from_ns = options->from_ns, .to_ns = options->to_ns };
	int rc = page_tables_finish(page->tables, run, err);

	if (!rc)
		rc = consumers_end(page->compared, page->n_compared, run, err);
	if (rc)
		return rc;
	page->tabled = true;
	page_rows_account(page->rows, page_tables_windows(page->tables));
	page_rows_memory_end(page->rows, run->begin_ns + report_duration_ns(&read, run));
	page_rows_end(page->rows);
	rc = page_blocks_end(page->blocks, err);
	if (rc)
		return rc;
	page_make_index(page, run);
	page->run = *run;
	page->run.end_ns = run->begin_ns + report_duration_ns(&read, run);
	if (page_tables_why(page->tables))
		why_forget(page_tables_why(page->tables));
	page_tables_forget(page->tables);
	page_rows_free(page->rows);
	page->rows = NULL;
	return 0;
}

static int page_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct page *page = (struct page *)self;
	int rc;

	if (!page->tables)
		return 0;
	rc = page_settle(page, run, err);
	if (rc || (page->pair && page->side == DIFF_A))
		return rc;
	page->sink.lines.elsewhere = 0;
	return page->pair ? pair_write(page->pair, page, err) : page_write(page, err);
}

/* One of two is the pair's. */
static void page_free(struct consumer *self)
{
	struct page *page = (struct page *)self;

	if (!page->pair)
		page_drop(page);
}

static const struct consumer_ops page_ops = {
	.begin = page_begin,
	.event = page_event,
	.end = page_end,
	.free = page_free,
	.metrics = true,
};

struct consumer *page_new(const struct sink_options *options)
{
	struct page *page = xcalloc(1, sizeof(*page));

	page->sink.gpu = true;
	page->sink.samples = true;
	page->sink.joins = true;
	page->pair = options->pair;
	if (page->pair) {
		page->side = (enum diff_side)page->pair->n;
		page->pair->sides[page->pair->n++] = page;
	}
	return sink_init(&page->sink, &page_ops, options);
}
