// SPDX-License-Identifier: MIT
/*
 * A profile as a page: the flame graph, and beside it tables of functions and of stacks, which the
 * modules of the page of a trace show (src/page). One file, which asks for nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/order.h"
#include "base/text.h"
#include "page/page.h"
#include "profile/tree.h"
#include "profile/writers.h"

#define FUNCTIONS 300 /* by the time in themselves, and as many by their total */
#define STACKS    100
#define CALLERS   60 /* frames of a stack that are named */

static const char begin[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n";

/* Nothing is fetched, and no other script run, whatever a name may bring about. */
static const char policy[] =
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'; script-src 'sha256-%s'\">\n";

struct heading {
	const char *name, *type;
};

static void begin_table(struct json *json, const char *title, const struct heading *headings,
                        size_t n)
{
	json_open(json, NULL, '{');
	json_string(json, "title", title);
	json_open(json, "columns", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(json, NULL, '{');
		json_string(json, "name", headings[i].name);
		json_string(json, "type", headings[i].type);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_open(json, "rows", '[');
}

/* A time, and its share. */
static void add_time(struct json *json, uint64_t ns, uint64_t all)
{
	json_u64(json, NULL, ns);
	json_fixed(json, NULL, all ? (uint64_t)((double)ns / (double)all * 1000 + 0.5) : 0, 1);
}

/* As it stands in the graph, where it is found by that. */
static void add_name(struct json *json, const struct tree *tree, uint32_t node)
{
	AT_END(buf_free) struct buf safe = { 0 };

	text_add_safe(&safe, tree_label(tree, node));
	json_string(json, NULL, safe.data ? safe.data : "");
}

/* ---- functions ------------------------------------------------------------------------------- */

ORDER_BY(by_self, struct function_time, DOWN(self[0]), DOWN(total[0]), UP(node));

ORDER_BY(by_total, struct function_time, DOWN(total[0]), UP(node));

/* Brings those to the front that are shown, in order of the time in themselves. */
static size_t choose_functions(struct function_time *functions, size_t n)
{
	size_t rest, shown = n < FUNCTIONS ? n : FUNCTIONS;

	qsort(functions, n, sizeof(*functions), by_self);
	rest = n - shown;
	if (rest)
		qsort(functions + shown, rest, sizeof(*functions), by_total);
	shown += rest < FUNCTIONS ? rest : FUNCTIONS;
	qsort(functions, shown, sizeof(*functions), by_self);
	return shown;
}

static void add_functions(struct json *json, const struct tree *tree)
{
	static const struct heading headings[] = { { "Function", "text" },
		                                   { "Itself", "duration" },
		                                   { "Share", "percent" },
		                                   { "With callees", "duration" },
		                                   { "Share", "percent" } };
	uint64_t all = tree_total(tree, 0, 0);
	AT_END(at_end_free) struct function_time *functions;
	size_t n, shown;

	functions = functions_of(tree, &n);
	shown = choose_functions(functions, n);
	begin_table(json, "Functions", headings, ARRAY_SIZE(headings));
	for (size_t i = 0; i < shown; i++) {
		json_open(json, NULL, '[');
		add_name(json, tree, functions[i].node);
		add_time(json, functions[i].self[0], all);
		add_time(json, functions[i].total[0], all);
		json_close(json, ']');
	}
	json_close(json, ']');
	json_u64(json, "more", n - shown);
	json_close(json, '}');
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static void add_callers(struct json *json, const struct tree *tree, uint32_t leaf)
{
	AT_END(buf_free) struct buf callers = { 0 };
	size_t n = 0;

	buf_puts(&callers, "");
	for (uint32_t at = tree->nodes[leaf].parent; at; at = tree->nodes[at].parent) {
		if (n)
			buf_puts(&callers, " < ");
		if (n++ == CALLERS) {
			buf_puts(&callers, "...");
			break;
		}
		text_add_safe(&callers, tree_label(tree, at));
	}
	json_string(json, NULL, callers.data);
}

static void add_stacks(struct json *json, const struct tree *tree)
{
	static const struct heading headings[] = { { "Innermost frame", "text" },
		                                   { "Time", "duration" },
		                                   { "Share", "percent" },
		                                   { "Called by", "text" } };
	uint32_t stacks[STACKS + 1];
	size_t n = functions_heaviest_stacks(tree, stacks, STACKS);

	begin_table(json, "Heaviest stacks", headings, ARRAY_SIZE(headings));
	for (size_t i = 0; i < n; i++) {
		json_open(json, NULL, '[');
		add_name(json, tree, stacks[i]);
		add_time(json, tree_self(tree, 0, stacks[i]), tree_total(tree, 0, 0));
		add_callers(json, tree, stacks[i]);
		json_close(json, ']');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void add_tables(struct buf *out, const struct tree *tree)
{
	AT_END(buf_free) struct buf text = { 0 };
	struct json json = { .out = &text };

	json_open(&json, NULL, '{');
	json_open(&json, "tables", '[');
	add_functions(&json, tree);
	add_stacks(&json, tree);
	json_close(&json, ']');
	json_close(&json, '}');
	buf_puts(out, "<script type=\"application/json\" id=\"index\">");
	page_add_json(out, text.data, text.len);
	buf_puts(out, "</script>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

static void add_page(const struct flame *flame, struct buf *out)
{
	AT_END(buf_free) struct buf title = { 0 }, safe = { 0 };

	flame_add_title(flame, &title);
	xml_add_text(&safe, title.data);
	buf_puts(out, begin);
	buf_printf(out, policy, report_profile_script_hash);
	buf_printf(out, "<title>%s</title>\n<style>\n", safe.data);
	buf_add(out, report_page_style, (size_t)(report_page_style_end - report_page_style));
	flame_add_colours(flame, out);
	buf_printf(out,
	           "</style>\n</head>\n<body>\n<header><h1>%s</h1></header>\n"
	           "<main class=\"profile\">\n<div class=\"picture\">\n",
	           safe.data);
	flame_draw(flame, out);
	buf_puts(out, "</div>\n<aside></aside>\n</main>\n");
	add_tables(out, flame->tree);
	buf_puts(out, "<script>");
	buf_add(out, report_profile_script,
	        (size_t)(report_profile_script_end - report_profile_script));
	buf_puts(out, "</script>\n</body>\n</html>\n");
}

void html_write(const struct profile *profile, const struct profile_info *info, struct lines *lines)
{
	AT_END(tree_free) struct tree tree = { 0 };
	struct flame flame = { .tree = &tree, .info = info, .in_page = true };

	tree_add(&tree, profile, 0, info_kinds(info));
	tree_finish(&tree);
	add_page(&flame, &lines->pending);
	lines_added(lines, NULL);
}
