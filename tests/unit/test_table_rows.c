// SPDX-License-Identifier: MIT
/* Tables filled from rows by their description, and those that are parts of a page. */
#include "unit.h"

#include <math.h>

#include "table/table.h"

struct row {
	uint64_t calls, total_ns, free_count, free_bytes, peak;
	uint32_t pid, grid[3];
	int32_t code;
	double share;
	bool ended;
	const char *name;
	struct buf words;
};

static const struct table_column columns[] = {
	{ "Calls", TABLE_NUMBER, TABLE_AT(struct row, calls) },
	{ "Total", TABLE_DURATION, TABLE_AT(struct row, total_ns) },
	{ "PID", TABLE_NUMBER, TABLE_AT(struct row, pid) },
	{ "Grid", TABLE_TRIPLE, TABLE_AT(struct row, grid) },
	{ "Code", TABLE_NUMBER, TABLE_AT(struct row, code) },
	{ "Share", TABLE_PERCENT, TABLE_AT(struct row, share) },
	{ "Ended", TABLE_TEXT, TABLE_AT(struct row, ended) },
	{ "Words", TABLE_TEXT, TABLE_AT(struct row, words) },
	{ "Name", TABLE_TEXT, TABLE_AT(struct row, name) },
};

static const struct row full = {
	.calls = 12,
	.total_ns = 1500,
	.free_count = 3,
	.free_bytes = 4096,
	.peak = 7,
	.pid = 42,
	.grid = { 1, 2, 3 },
	.code = -5,
	.share = 12.5,
	.ended = true,
	.name = "cuInit",
	.words = { .data = "two words", .len = 9 },
};

static char *text;
static size_t len;

static struct table *start(FILE **out, enum table_form form)
{
	*out = open_memstream(&text, &len);
	return table_open(&(struct table_options){ .form = form, .out = *out }, false);
}

static void end(struct table *table, FILE *out)
{
	table_close(table);
	fclose(out);
}

static void test_a_row_is_filled_from_its_description(void **state)
{
	const struct row nothing = { .calls = TABLE_NOT_KNOWN, .share = NAN };
	FILE *out;
	struct table *table = start(&out, TABLE_FORM_CSV);

	table_begin(table, NULL, NULL, TABLE_COLUMNS(columns));
	table_row(table, &full);
	table_row(table, &nothing);
	assert_int_equal(table_end(table, NULL), 0);
	end(table, out);
	assert_string_equal(text, "Calls,Total (ns),PID,Grid,Code,Share (%),Ended,Words,Name\n"
	                          "12,1500,42,1 2 3,-5,12.5,true,two words,cuInit\n"
	                          ",0,0,0 0 0,0,,false,,\n");
	free(text);
}

static void test_cells_by_hand_stand_between_those_of_a_row(void **state)
{
	static const struct table_column mixed[] = {
		{ "Calls", TABLE_NUMBER, TABLE_AT(struct row, calls) },
		{ "By Hand", TABLE_NUMBER },
		{ "Name", TABLE_TEXT, TABLE_AT(struct row, name) },
	};
	FILE *out;
	struct table *table = start(&out, TABLE_FORM_CSV);

	table_begin(table, NULL, NULL, TABLE_COLUMNS(mixed));
	table_fields(table, &full);
	table_u64(table, 99);
	table_row(table, &full);
	assert_int_equal(table_end(table, NULL), 0);
	end(table, out);
	assert_string_equal(text, "Calls,By Hand,Name\n12,99,cuInit\n");
	free(text);
}

/* One cell too few or too many, of rows that are written at once, are left out, or wait. */
static void assert_refused(int cells, size_t top, bool in_order)
{
	struct err err = { 0 };
	FILE *out = open_memstream(&text, &len);
	struct table *table = table_open(
		&(struct table_options){ .form = TABLE_FORM_CSV, .out = out, .top = top }, false);

	table_begin(table, NULL, NULL, columns, 3);
	if (in_order)
		table_in_order(table);
	for (int row = 0; row < 2; row++) {
		for (int i = 0; i < (row ? cells : 3); i++)
			table_u64(table, i);
		table_end_row(table);
	}
	assert_int_not_equal(table_end(table, &err), 0);
	assert_non_null(strstr(err.text, "cells in a table of 3 columns"));
	end(table, out);
	assert_null(strstr(text, "0,1\n"));
	free(text);
}

static void test_a_row_of_other_cells_than_columns_is_a_failure(void **state)
{
	assert_refused(2, 0, false);
	assert_refused(4, 0, false);
	assert_refused(60, 0, false);
	assert_refused(2, 1, false);
	assert_refused(2, 0, true);
	assert_refused(4, 0, true);
}

enum { HAS_TIMES = 1 };

static const struct table_column page_columns[] = {
	{ "NAME", TABLE_TEXT, TABLE_AT(struct row, name), "name" },
	{ "CALLS", TABLE_NUMBER, TABLE_AT(struct row, calls), "calls", TABLE_SCALED },
	{ "TOTAL", TABLE_DURATION, TABLE_AT(struct row, total_ns), "total_ns", TABLE_SCALED,
	  .needs = HAS_TIMES },
	{ "PEAK", TABLE_NUMBER, TABLE_AT(struct row, peak), "peak", TABLE_EXACT },
	{ NULL, TABLE_NUMBER, TABLE_AT(struct row, free_count), "freed.count" },
	{ NULL, TABLE_NUMBER, TABLE_AT(struct row, free_bytes), "freed.bytes" },
	{ NULL, TABLE_REAL, TABLE_AT(struct row, share), "share", .decimals = 3 },
	{ NULL, TABLE_NUMBER, TABLE_AT(struct row, pid), "pid", TABLE_ZERO | TABLE_ABSENT },
	{ "MARK", TABLE_FIGURE, TABLE_AT(struct row, words) },
};

static void write_page(struct table_options options, size_t rows)
{
	struct table *table = table_open(&options, false);
	const struct row other = { .name = "cuFree", .words.data = "+" };

	table_begin(table, "rows", "ROWS", TABLE_COLUMNS(page_columns));
	for (size_t i = 0; i < rows; i++)
		table_row(table, i ? &other : &full);
	assert_int_equal(table_end(table, NULL), 0);
	table_close(table);
}

static void test_a_table_of_a_page_has_its_title_and_no_more_rows_than_top(void **state)
{
	struct buf page = { 0 };

	write_page((struct table_options){ .page = &page, .top = 2 }, 3);
	assert_string_equal(page.data, "\nROWS\n"
	                               "  NAME    CALLS  PEAK       MARK\n"
	                               "  cuInit     12     7  two words\n"
	                               "  cuFree      0     0          +\n");
	buf_reset(&page);
	write_page((struct table_options){ .page = &page }, 0);
	assert_int_equal(page.len, 0);
	buf_free(&page);
}

static void test_estimates_of_a_page_are_scaled_and_marked(void **state)
{
	struct buf page = { 0 };

	write_page((struct table_options){ .page = &page, .scale = 2, .has = HAS_TIMES }, 1);
	assert_string_equal(page.data, "\nROWS\n"
	                               "  NAME    CALLS     TOTAL  PEAK       MARK\n"
	                               "  cuInit    ~24  ~3.00 us     ?  two words\n");
	buf_free(&page);
}

static void test_a_page_in_json_has_all_rows_with_short_keys(void **state)
{
	struct buf page = { 0 };
	struct json json = { .out = &page };

	json_open(&json, NULL, '{');
	write_page((struct table_options){ .json = &json, .top = 1 }, 2);
	json_close(&json, '}');
	assert_string_equal(page.data,
	                    "{\"rows\":[{\"name\":\"cuInit\",\"calls\":12,\"peak\":7,"
	                    "\"freed\":{\"count\":3,\"bytes\":4096},\"share\":12.500,\"pid\":42},"
	                    "{\"name\":\"cuFree\",\"calls\":0,\"peak\":0,"
	                    "\"freed\":{\"count\":0,\"bytes\":0},\"share\":0.000}]}");
	buf_free(&page);
}

static void test_rows_can_be_members_of_an_object(void **state)
{
	static const struct table_column named[] = {
		{ "NAME", TABLE_TEXT, TABLE_AT(struct row, name), "", TABLE_MEMBER },
		{ "CALLS", TABLE_NUMBER, TABLE_AT(struct row, calls), "calls" },
	};
	struct buf page = { 0 };
	struct json json = { .out = &page };
	struct table *table = table_open(&(struct table_options){ .json = &json }, false);

	json_open(&json, NULL, '{');
	table_members(table, named + 1, 1, &full);
	table_begin(table, "kinds", NULL, TABLE_COLUMNS(named));
	table_rows(table, &full, 1, sizeof(full));
	assert_int_equal(table_end(table, NULL), 0);
	json_close(&json, '}');
	assert_string_equal(page.data, "{\"calls\":12,\"kinds\":{\"cuInit\":{\"calls\":12}}}");
	table_close(table);
	buf_free(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_row_is_filled_from_its_description),
		cmocka_unit_test(test_cells_by_hand_stand_between_those_of_a_row),
		cmocka_unit_test(test_a_row_of_other_cells_than_columns_is_a_failure),
		cmocka_unit_test(test_a_table_of_a_page_has_its_title_and_no_more_rows_than_top),
		cmocka_unit_test(test_estimates_of_a_page_are_scaled_and_marked),
		cmocka_unit_test(test_a_page_in_json_has_all_rows_with_short_keys),
		cmocka_unit_test(test_rows_can_be_members_of_an_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
