// SPDX-License-Identifier: MIT
/* Two profiles compared: profile_notes.h. Side 0 of the tree is the one before, side 1 the other.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "profile/writers.h"
#include "profile/tree.h"
#include "profile/profile_write.h"

#define FUNCTIONS   10
#define WIDTH       80
#define FIXED       48 /* columns before the function */
#define LEAST       20
#define LEAST_SHARE 0.0005 /* a change that is shown as one */

static void add_both(struct tree *tree, const struct profile_pair *pair)
{
	unsigned kinds = info_kinds(pair->after_info);

	tree_add(tree, pair->before, 0, kinds);
	tree_add(tree, pair->after, 1, kinds);
	tree_finish(tree);
}

/* ---- files ----------------------------------------------------------------------------------- */

bool profile_diff_has(enum profile_format format)
{
	return format == PROFILE_SVG || format == PROFILE_FOLDED;
}

int profile_diff_write(const struct profile_pair *pair, enum profile_format format, FILE *out,
                       const char *what, struct err *err)
{
	struct tree tree = { 0 };
	struct flame flame = { .tree = &tree,
		               .info = pair->after_info,
		               .before = pair->before_info };
	struct lines lines;
	int rc;

	if (!profile_diff_has(format))
		return err_set(err, EINVAL,
		               "a difference of two profiles is written as .svg or .folded, not as "
		               "%s",
		               format < PROFILE_FORMATS ? profile_format_ending(format) : "this");
	lines_init(&lines, out, what);
	add_both(&tree, pair);
	if (format == PROFILE_SVG)
		flame_draw(&flame, &lines.pending);
	else
		folded_write_tree(&tree, &lines);
	rc = lines_end(&lines, err);
	lines_free(&lines);
	tree_free(&tree);
	return rc;
}

/* ---- a terminal ------------------------------------------------------------------------------ */

static const struct table_column columns[] = {
	{ "Before", TABLE_FIGURE },          { "After", TABLE_FIGURE },
	{ "Change (points)", TABLE_FIGURE }, { "Time after", TABLE_DURATION },
	{ "Function", TABLE_TEXT },
};

struct change {
	struct function_time time;
	double share[TREE_SIDES];
};

static double points_of(const struct change *change)
{
	return change->share[1] - change->share[0];
}

ORDER_BY(by_change, struct change, ORDER_OF(fabs(points_of(b)), fabs(points_of(a))), UP(time.node));

static struct change *find_changes(const struct tree *tree, size_t *n)
{
	AT_END(at_end_free) struct function_time *functions = functions_of(tree, n);
	struct change *changes = xcalloc(*n + 1, sizeof(*changes));

	for (size_t i = 0; i < *n; i++) {
		changes[i].time = functions[i];
		for (unsigned side = 0; side < TREE_SIDES; side++) {
			uint64_t all = tree_total(tree, side, 0);

			if (all)
				changes[i].share[side] =
					(double)functions[i].self[side] / (double)all;
		}
	}
	qsort(changes, *n, sizeof(*changes), by_change);
	return changes;
}

static void add_change(struct table *table, const struct tree *tree, const struct change *change,
                       size_t width)
{
	uint64_t tenths = (uint64_t)(fabs(points_of(change)) * 1000 + 0.5);
	AT_END(buf_free) struct buf text = { 0 };

	for (unsigned side = 0; side < TREE_SIDES; side++) {
		buf_reset(&text);
		words_add_share(&text, change->time.self[side], tree_total(tree, side, 0));
		table_text(table, text.data);
	}
	buf_reset(&text);
	buf_putc(&text, points_of(change) < 0 ? '-' : '+');
	buf_fixed(&text, tenths, 1);
	TABLE_CELLS(table, text.data, change->time.self[1]);
	buf_reset(&text);
	words_add_frame(&text, tree_label(tree, change->time.node), width);
	TABLE_LAST(table, text.data);
}

static void add_completeness(struct table *table, const char *when, const struct profile *profile)
{
	AT_END(buf_free) struct buf text = { 0 }, safe = { 0 };

	profile_completeness(profile, &text);
	text_add_safe(&safe, text.data);
	table_note(table, "%s: %s.", when, safe.data);
}

static void add_changes(struct table *table, const struct tree *tree, size_t most)
{
	size_t n, shown = 0, width = table_options(table)->width;
	AT_END(at_end_free) struct change *changes = find_changes(tree, &n);

	width = width ? width : WIDTH;
	width = width > FIXED + LEAST ? width - FIXED : LEAST;
	for (; shown < n && shown < most && fabs(points_of(&changes[shown])) >= LEAST_SHARE;
	     shown++)
		add_change(table, tree, &changes[shown], width);
	table_note_if(table, !shown, "No function's share changed by 0.1 points or more.");
}

int profile_diff_functions(const struct profile_pair *pair, size_t functions,
                           const struct table_options *options, struct err *err)
{
	struct table_options all = *options;
	AT_END(tree_free) struct tree tree = { 0 };
	struct table *table;
	int rc;

	all.form = TABLE_FORM_TEXT;
	all.top = 0;
	all.sort = NULL;
	table = table_open(&all, false);
	add_both(&tree, pair);
	table_begin(table, NULL, "Functions whose share of all time changed most",
	            TABLE_COLUMNS(columns));
	add_changes(table, &tree, functions ? functions : FUNCTIONS);
	add_completeness(table, "Before", pair->before);
	add_completeness(table, "After", pair->after);
	rc = table_end(table, err);
	if (!rc)
		rc = table_finish(table, err);
	table_close(table);
	return rc;
}
