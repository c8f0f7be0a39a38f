// SPDX-License-Identifier: MIT
/*
 * A profile as a page: the flame graph, and beside it tables of functions and of stacks that can be
 * sorted and searched. One file, which asks for nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/xalloc.h"
#include "base/text.h"
#include "profile/writers.h"
#include "profile/tree.h"

#define FUNCTIONS 300 /* by the time in themselves, and as many by their total */
#define STACKS    100
#define CALLERS   60 /* frames of a stack that are named */

static const char begin[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	/* nothing is fetched, whatever a name may bring about */
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n";

static void add_headings(struct buf *out, const char *title, const char *const *headings, size_t n)
{
	buf_printf(out,
	           "<section><div class=\"box\"><h2>%s</h2><input type=\"search\" "
	           "placeholder=\"Filter\" aria-label=\"Filter\"></div>\n"
	           "<div class=\"rows\"><table><thead><tr>",
	           title);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "<th%s><button>%s</button></th>",
		           i ? "" : " aria-sort=\"descending\"", headings[i]);
	buf_puts(out, "</tr></thead>\n<tbody>\n");
}

static void end_table(struct buf *out)
{
	buf_puts(out, "</tbody></table></div></section>\n");
}

/* A time, and its share. */
static void add_time(struct buf *out, uint64_t ns, uint64_t all)
{
	AT_END(buf_free) struct buf share = { 0 };

	buf_printf(out, "<td data-v=\"%llu\">", (unsigned long long)ns);
	buf_duration(out, ns);
	buf_printf(out, "</td><td data-v=\"%llu\">", (unsigned long long)ns);
	words_add_share(&share, ns, all);
	xml_add_text(out, share.data);
	buf_puts(out, "</td>");
}

static void add_name(struct buf *out, const struct tree *tree, uint32_t node)
{
	buf_printf(out,
	           "<td><button title=\"Find it in the graph\"><i style=\"background:%s\"></i>",
	           flame_colour(tree->nodes[node].kind));
	xml_add_text(out, tree_label(tree, node));
	buf_puts(out, "</button>");
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

static void add_functions(struct buf *out, const struct tree *tree)
{
	static const char *const headings[] = { "Itself", "Share", "With callees", "Share",
		                                "Function" };
	uint64_t all = tree_total(tree, 0, 0);
	AT_END(at_end_free) struct function_time *functions;
	size_t n, shown;

	functions = functions_of(tree, &n);
	shown = choose_functions(functions, n);
	add_headings(out, "Functions", headings, ARRAY_SIZE(headings));
	for (size_t i = 0; i < shown; i++) {
		buf_puts(out, "<tr>");
		add_time(out, functions[i].self[0], all);
		add_time(out, functions[i].total[0], all);
		add_name(out, tree, functions[i].node);
		buf_puts(out, "</td></tr>\n");
	}
	end_table(out);
	if (shown < n)
		buf_printf(out, "<p>%zu lighter functions are left out.</p>\n", n - shown);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static void add_callers(struct buf *out, const struct tree *tree, uint32_t leaf)
{
	size_t n = 0;

	buf_puts(out, "<small>");
	for (uint32_t at = tree->nodes[leaf].parent; at; at = tree->nodes[at].parent) {
		buf_puts(out, n ? " &lt; " : "&lt; ");
		if (n++ == CALLERS) {
			buf_puts(out, "...");
			break;
		}
		xml_add_text(out, tree_label(tree, at));
	}
	buf_puts(out, "</small>");
}

static void add_stacks(struct buf *out, const struct tree *tree)
{
	static const char *const headings[] = { "Time", "Share", "Stack, innermost frame first" };
	uint32_t stacks[STACKS + 1];
	size_t n = functions_heaviest_stacks(tree, stacks, STACKS);

	add_headings(out, "Heaviest stacks", headings, ARRAY_SIZE(headings));
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, "<tr>");
		add_time(out, tree_self(tree, 0, stacks[i]), tree_total(tree, 0, 0));
		add_name(out, tree, stacks[i]);
		if (tree->nodes[stacks[i]].parent)
			add_callers(out, tree, stacks[i]);
		buf_puts(out, "</td></tr>\n");
	}
	end_table(out);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void add_page(const struct flame *flame, struct buf *out)
{
	AT_END(buf_free) struct buf title = { 0 }, safe = { 0 };

	flame_add_title(flame, &title);
	xml_add_text(&safe, title.data);
	buf_puts(out, begin);
	buf_printf(out, "<title>%s</title>\n<style>\n%s%s", safe.data, flame_style, page_style);
	flame_add_colours(flame, out);
	buf_printf(out, "</style>\n</head>\n<body>\n<h1>%s</h1>\n<main>\n<div class=\"picture\">\n",
	           safe.data);
	flame_draw(flame, out);
	buf_puts(out, "</div>\n<aside>\n");
	add_functions(out, flame->tree);
	add_stacks(out, flame->tree);
	buf_printf(out,
	           "</aside>\n</main>\n<script>\n%s</script>\n<script>\n%s</script>\n</body>\n"
	           "</html>\n",
	           flame_script, page_script);
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
