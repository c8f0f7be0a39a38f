// SPDX-License-Identifier: MIT
#include "profile/profile_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "profile/profile_private.h"
#include "profile/tree.h"
#include "profile/words.h"
#include "profile/writers.h"

static const struct format {
	const char *ending;
	void (*write)(const struct profile *profile, const struct profile_info *info,
	              struct lines *lines);
	bool compressed;
} formats[PROFILE_FORMATS] = {
	[PROFILE_FOLDED] = { ".folded", folded_write },
	[PROFILE_SVG] = { ".svg", svg_write },
	[PROFILE_HTML] = { ".html", html_write },
	[PROFILE_PPROF] = { ".pb.gz", pprof_write, .compressed = true },
	[PROFILE_SPEEDSCOPE] = { ".speedscope.json", speedscope_write },
};

const char *profile_format_ending(enum profile_format format)
{
	return formats[format].ending;
}

void profile_format_endings(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		buf_printf(out, "%s%s", i ? ", " : "", formats[i].ending);
}

enum profile_format profile_format_of(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t ending = strlen(formats[i].ending);

		if (len > ending && !strcmp(path + len - ending, formats[i].ending))
			return (enum profile_format)i;
	}
	return PROFILE_FORMATS;
}

int profile_write(const struct profile *profile, const struct profile_info *info,
                  enum profile_format format, FILE *out, const char *what, struct err *err)
{
	AT_END(lines_free) struct lines lines;

	lines_init(&lines, out, what);
	if (formats[format].compressed)
		lines_compress(&lines);
	formats[format].write(profile, info, &lines);
	return lines_end(&lines, err);
}

/*
 * The heaviest stacks for a terminal:
 *
 *     Share      Time  Stack, innermost frame first
 *    23.4 %    2.31 s  [GPU_Kernel]gemm<...>(...)
 *                        < cudaLaunchKernel < at::addmm < Net.forward (model.py)
 *
 * Of the callers those are named that a reader may know: the call into CUDA, two native functions,
 * then Python's. What lies between, without names or inside of CUDA and interpreter, is left out.
 */

#define STACKS       10
#define WIDTH        80
#define LINES        3  /* for the callers of a stack */
#define FIXED        21 /* columns before the stack */
#define CALLS        9  /* columns more, with the number of calls */
#define NAME_COLUMNS 34 /* of a caller */
#define LEAST        20 /* columns of a stack, in a terminal of any width */
#define NATIVE_MOST  2  /* between the call into CUDA and the functions of Python */

static const struct table_column columns[] = {
	{ "Share", TABLE_FIGURE },
	{ "Time", TABLE_FIGURE },
	{ "Stack, innermost frame first", TABLE_WORDS },
};

/* Of functions that users hook. */
static const struct table_column hook_columns[] = {
	{ "Share", TABLE_FIGURE },
	{ "Time", TABLE_FIGURE },
	{ "Calls", TABLE_FIGURE },
	{ "Stack, innermost frame first", TABLE_WORDS },
};

/* Where stacks are listed. */
struct listing {
	struct table *table;
	size_t width; /* of a stack */
	bool calls;   /* with their number */
};

/* ---- the callers that are named -------------------------------------------------------------- */

/* What is known of a stack on the way outwards. */
struct naming {
	const struct tree *tree;
	bool has_python;
	unsigned native; /* that were named */
};

static bool is_named(const struct tree *tree, uint32_t at)
{
	const struct tree_node *node = &tree->nodes[at];

	return node->frame == KEEP_NONE ||
	       tree->profiles[node->side]->frames[node->frame].function != 0;
}

static bool is_interpreter(const char *name)
{
	return !strncmp(name, "_Py", 3) || !strncmp(name, "Py", 2) || !strncmp(name, "py_", 3);
}

static bool has_python(const struct tree *tree, uint32_t at)
{
	for (; at; at = tree->nodes[at].parent) {
		if (tree->nodes[at].kind == FRAME_PYTHON)
			return true;
	}
	return false;
}

/* Where Linux is entered, for a call or for a fault: it is the same in all stacks. */
static bool is_kernel_entry(const struct tree *tree, uint32_t at)
{
	static const char *const begins[] = { "entry_", "do_syscall_64", "x64_sys_call",
		                              "asm_",   "el0",           "invoke_syscall" };

	if (tree->nodes[at].kind != FRAME_KERNEL_MODE)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(tree_label(tree, at), begins[i], strlen(begins[i])))
			return true;
	return false;
}

static bool matters(struct naming *naming, uint32_t at)
{
	const struct tree *tree = naming->tree;
	const struct tree_node *node = &tree->nodes[at];
	unsigned outer = tree->nodes[node->parent].kind;

	switch (node->kind) {
	case FRAME_CUDA: /* the call that the program made */
		return is_named(tree, at) && outer != FRAME_CUDA;
	case FRAME_DRIVER:
	case FRAME_KERNEL_MODE:
		if (is_kernel_entry(tree, at) || !is_named(tree, at) ||
		    ((outer == node->kind || outer == FRAME_KERNEL_MODE) &&
		     !is_kernel_entry(tree, node->parent)))
			return false;
		naming->native++; /* the C library's part in it says little more */
		return true;
	case FRAME_NATIVE:
	case FRAME_JIT:
		if (!is_named(tree, at))
			return false;
		if (!naming->has_python)
			return true;
		return !is_interpreter(tree_label(tree, at)) && naming->native++ < NATIVE_MOST;
	case PROFILE_TASK: /* add_task() names it, however deep the stack */
		return false;
	default:
		return true;
	}
}

/* Without what stands for its parameters: "at::addmm". */
static void add_caller(struct buf *name, const char *label)
{
	static const char parameters[] = "(...)";
	size_t rest = sizeof(parameters) - 1;

	buf_reset(name);
	words_add_frame(name, label, NAME_COLUMNS);
	if (name->len <= rest || strcmp(name->data + name->len - rest, parameters))
		return;
	name->len -= rest;
	name->data[name->len] = '\0';
}

static void end_line(const struct listing *to, struct buf *line)
{
	TABLE_CELLS(to->table, "", "");
	if (to->calls)
		table_text(to->table, "");
	TABLE_LAST(to->table, line->data);
	buf_reset(line);
}

/* "  < cudaLaunchKernel < step < main", as far as the lines have room for. */
static void add_callers(const struct tree *tree, uint32_t leaf, const struct listing *to)
{
	struct naming naming = { .tree = tree, .has_python = has_python(tree, leaf) };
	static const char more[] = " < ...";
	AT_END(buf_free) struct buf name = { 0 }, line = { 0 };
	unsigned lines = 1;

	buf_puts(&line, " ");
	for (uint32_t at = tree->nodes[leaf].parent; at; at = tree->nodes[at].parent) {
		size_t kept = tree->nodes[at].parent && lines == LINES ? sizeof(more) - 1 : 0;

		if (!matters(&naming, at))
			continue;
		add_caller(&name, tree_label(tree, at));
		if (text_columns(line.data) + 3 + text_columns(name.data) + kept > to->width) {
			if (lines++ == LINES) {
				buf_puts(&line, more);
				break;
			}
			end_line(to, &line);
			buf_puts(&line, " ");
		}
		buf_printf(&line, " < %s", name.data);
	}
	if (line.len > 1)
		end_line(to, &line);
}

/* "  in loader (5152) of python3 (5151)", where processes or threads are apart. */
static void add_task(const struct tree *tree, uint32_t leaf, const struct listing *to)
{
	AT_END(buf_free) struct buf line = { 0 };

	buf_puts(&line, "");
	for (uint32_t at = leaf; at; at = tree->nodes[at].parent) {
		if (tree->nodes[at].kind != PROFILE_TASK)
			continue;
		buf_puts(&line, line.len ? " of " : "  in ");
		words_add_frame(&line, tree_label(tree, at),
		                to->width < NAME_COLUMNS ? to->width : NAME_COLUMNS);
	}
	if (line.len)
		end_line(to, &line);
}

/* ---- the heaviest ---------------------------------------------------------------------------- */

static bool is_blocked(const struct tree *tree, uint32_t at)
{
	return !strcmp(tree_label(tree, at), PROFILE_OFF_CPU_LABEL);
}

/* The frame that says how a blocked thread went on: profile_blocked_name(). */
static bool is_how(const char *label)
{
	static const char *const begins[] = { "[woken by ", "[still blocked", "[blocked since",
		                              "[shorter than " };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(label, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/*
 * "blocked, woken by python3" of two frames, [off_CPU] and [woken by python3]. Returns the one
 * whose callers are still to be told.
 */
static uint32_t add_blocked(const struct tree *tree, uint32_t leaf, size_t width, struct buf *text)
{
	uint32_t outer = tree->nodes[leaf].parent;
	const char *how = outer ? tree_label(tree, outer) : "";
	bool says_it = strncmp(how, "[woken", 6) && strncmp(how, "[shorter", 8);
	AT_END(buf_free) struct buf name = { 0 };

	if (!is_how(how))
		buf_puts(&name, "blocked");
	else
		buf_printf(&name, "%s%.*s", says_it ? "" : "blocked, ", (int)strcspn(how, "]") - 1,
		           how + 1);
	words_add_frame(text, name.data, width);
	return is_how(how) ? outer : leaf;
}

static void add_stack(const struct tree *tree, uint32_t leaf, const struct listing *to)
{
	uint64_t self = tree_self(tree, 0, leaf);
	struct table *table = to->table;
	struct buf text = { 0 };

	words_add_share(&text, self, tree_total(tree, 0, 0));
	table_text(table, text.data);
	buf_reset(&text);
	buf_duration(&text, self);
	table_text(table, text.data);
	buf_reset(&text);
	if (to->calls) {
		buf_u64(&text, tree->sums[0][leaf].count);
		table_text(table, text.data);
		buf_reset(&text);
	}
	if (is_blocked(tree, leaf))
		leaf = add_blocked(tree, leaf, to->width, &text);
	else
		words_add_frame(&text, tree_label(tree, leaf), to->width);
	TABLE_LAST(table, text.data);
	buf_free(&text);
	add_callers(tree, leaf, to);
	add_task(tree, leaf, to);
}

static void add_notes(const struct profile *profile, const struct profile_info *info,
                      struct table *table)
{
	AT_END(buf_free) struct buf text = { 0 }, safe = { 0 };

	profile_completeness(profile, &text);
	text_add_safe(&safe, text.data);
	table_note(table, "Completeness: %s.", safe.data);
	for (size_t i = 0; i < info->n_notes; i++) {
		buf_reset(&safe);
		text_add_safe(&safe, info->notes[i]);
		table_note(table, "%s", safe.data);
	}
}

static bool is_of_hooks(const struct profile *profile)
{
	struct profile_sums sums;

	profile_total(profile, &sums);
	return sums.count[WEIGHT_HOOK] > 0;
}

static void begin_table(const struct listing *to, const char *title)
{
	if (to->calls)
		table_begin(to->table, NULL, title, TABLE_COLUMNS(hook_columns));
	else
		table_begin(to->table, NULL, title, TABLE_COLUMNS(columns));
}

static void add_title(const struct profile *profile, const struct profile_info *info,
                      struct buf *title)
{
	AT_END(buf_free) struct buf text = { 0 };

	words_add_title(profile, info, &text);
	text_add_safe(title, text.data);
	buf_reset(&text);
	words_add_subject(info, &text);
	if (text.len) {
		buf_putc(title, '\n');
		text_add_safe(title, text.data);
	}
}

int profile_heaviest(const struct profile *profile, const struct profile_info *info, size_t stacks,
                     const struct table_options *options, struct err *err)
{
	struct table_options all = *options;
	size_t n, most = stacks ? stacks : STACKS, width = options->width ? options->width : WIDTH;
	struct listing to = { .calls = is_of_hooks(profile) };
	size_t fixed = to.calls ? FIXED + CALLS : FIXED;
	AT_END(tree_free) struct tree tree = { 0 };
	AT_END(at_end_free) uint32_t *heaviest;
	AT_END(buf_free) struct buf title = { 0 };
	int rc;

	to.width = width > fixed + LEAST ? width - fixed : LEAST;
	all.form = TABLE_FORM_TEXT;
	all.top = 0;
	all.sort = NULL;
	to.table = table_open(&all, false);
	tree_add(&tree, profile, 0, info_kinds(info));
	tree_finish(&tree);
	heaviest = xcalloc(most + 1, sizeof(*heaviest));
	n = functions_heaviest_stacks(&tree, heaviest, most);
	add_title(profile, info, &title);
	begin_table(&to, title.data);
	for (size_t i = 0; i < n; i++)
		add_stack(&tree, heaviest[i], &to);
	add_notes(profile, info, to.table);
	rc = table_end(to.table, err);
	if (!rc)
		rc = table_finish(to.table, err);
	table_close(to.table);
	return rc;
}
