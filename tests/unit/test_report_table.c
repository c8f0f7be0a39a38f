// SPDX-License-Identifier: MIT
/* Tables as text, csv and json. */
#include "support.h"

#include <errno.h>
#include "base/array.h"
#include "table/table.h"

static const struct table_column columns[] = {
	{ "Time", TABLE_PERCENT },    { "Total Time", TABLE_DURATION },
	{ "Count", TABLE_NUMBER },    { "Start", TABLE_TIME },
	{ "Bytes", TABLE_BYTES },     { "Throughput", TABLE_RATE },
	{ "Grid", TABLE_TRIPLE },     { "P", TABLE_REAL },
	{ "Change", TABLE_DURATION }, { "Name", TABLE_TEXT },
};
#define N_COLUMNS (ARRAY_SIZE(columns))

static FILE *out;
static char *text, *told;
static size_t len;

static void note(void *data, const char *name, const char *line)
{
	free(told);
	assert_true(asprintf(&told, "%s: %s", name, line) > 0);
}

static struct table *start_table(struct table_options options, bool parts)
{
	out = open_memstream(&text, &len);
	options.out = out;
	options.note = note;
	options.name = "report";
	return table_open(&options, parts);
}

static void add_full_row(struct table *table, const char *name)
{
	table_real(table, 65.25);
	table_u64(table, 1234567);
	table_u64(table, 42);
	table_u64(table, 2500000);
	table_u64(table, 4096);
	table_real(table, 2048);
	table_triple(table, (uint32_t[]){ 196, 2, 1 });
	table_real(table, 0.000123);
	table_difference(table, -1500);
	table_text(table, name);
	table_end_row(table);
}

static void add_unknown_row(struct table *table)
{
	for (size_t i = 0; i < N_COLUMNS; i++)
		table_unknown(table);
	table_end_row(table);
}

static void finish_table(struct table *table)
{
	struct err err = { 0 };

	assert_int_equal(table_finish(table, &err), 0);
	table_close(table);
	fclose(out);
}

static void write_one(struct table_options options, const char *name)
{
	struct table *table = start_table(options, false);
	struct err err = { 0 };

	table_begin(table, NULL, "report: a title", columns, N_COLUMNS);
	add_full_row(table, name);
	add_unknown_row(table);
	table_note(table, "%d things were left out", 3);
	assert_int_equal(table_end(table, &err), 0);
	finish_table(table);
}

static void test_text_has_units_and_is_aligned(void **state)
{
	write_one((struct table_options){ .form = TABLE_FORM_TEXT }, "cuInit");
	assert_string_equal(text, "report: a title\n"
	                          "  Time (%)  Total Time  Count  Start (ms)     Bytes  Throughput"
	                          "       Grid         P    Change  Name\n"
	                          "      65.3    1.235 ms     42       2.500  4.00 KiB  2.00 KiB/s"
	                          "  (196,2,1)  0.000123  -1.50 us  cuInit\n"
	                          "         -           -      -           -         -           -"
	                          "          -         -         -  -\n"
	                          "  3 things were left out\n");
	free(text);
}

static void test_csv_has_raw_numbers_and_units_in_its_headings(void **state)
{
	write_one((struct table_options){ .form = TABLE_FORM_CSV }, "cuInit");
	assert_string_equal(text, "Time (%),Total Time (ns),Count,Start (ns),Bytes (bytes),"
	                          "Throughput (bytes/s),Grid,P,Change (ns),Name\n"
	                          "65.3,1234567,42,2500000,4096,2048.0,196 2 1,0.000123,-1500,"
	                          "cuInit\n"
	                          ",,,,,,,,,\n");
	assert_string_equal(told, "report: 3 things were left out");
	free(text);
}

static void test_csv_quotes_what_holds_commas_and_quotes(void **state)
{
	write_one((struct table_options){ .form = TABLE_FORM_CSV }, "f(int, \"x\")\x1b[1m");
	assert_has(text, ",\"f(int, \"\"x\"\")\\x1b[1m\"\n");
	free(text);
}

static void test_json_is_an_array_of_objects(void **state)
{
	write_one((struct table_options){ .form = TABLE_FORM_JSON }, "f\"\x1b");
	assert_string_equal(
		text, "[\n"
		      "  {\"Time (%)\": 65.3, \"Total Time (ns)\": 1234567, \"Count\": 42, "
		      "\"Start (ns)\": 2500000, \"Bytes (bytes)\": 4096, "
		      "\"Throughput (bytes/s)\": 2048.0, \"Grid\": [196, 2, 1], "
		      "\"P\": 0.000123, \"Change (ns)\": -1500, \"Name\": \"f\\\"\\u001b\"},\n"
		      "  {\"Time (%)\": null, \"Total Time (ns)\": null, \"Count\": null, "
		      "\"Start (ns)\": null, \"Bytes (bytes)\": null, "
		      "\"Throughput (bytes/s)\": null, \"Grid\": null, \"P\": null, "
		      "\"Change (ns)\": null, \"Name\": null}\n"
		      "]\n");
	free(text);
}

static void write_empty(enum table_form form, bool parts)
{
	struct table *table = start_table((struct table_options){ .form = form }, parts);
	struct err err = { 0 };

	table_begin(table, "part", "empty", columns, 2);
	assert_int_equal(table_end(table, &err), 0);
	finish_table(table);
}

static void test_tables_without_rows(void **state)
{
	write_empty(TABLE_FORM_TEXT, false);
	assert_string_equal(text, "empty\n  none\n");
	free(text);
	write_empty(TABLE_FORM_CSV, false);
	assert_string_equal(text, "Time (%),Total Time (ns)\n");
	free(text);
	write_empty(TABLE_FORM_JSON, false);
	assert_string_equal(text, "[]\n");
	free(text);
	write_empty(TABLE_FORM_JSON, true);
	assert_string_equal(text, "{\n  \"part\": []\n}\n");
	free(text);
}

static void test_parts_are_members_of_one_object(void **state)
{
	static const struct table_column one[] = { { "N", TABLE_NUMBER } };
	struct table *table = start_table((struct table_options){ .form = TABLE_FORM_JSON }, true);

	for (unsigned i = 0; i < 2; i++) {
		table_begin(table, i ? "b" : "a", NULL, one, 1);
		table_u64(table, i);
		table_end_row(table);
		table_end(table, NULL);
	}
	finish_table(table);
	assert_string_equal(text, "{\n  \"a\": [\n    {\"N\": 0}\n  ],\n"
	                          "  \"b\": [\n    {\"N\": 1}\n  ]\n}\n");
	free(text);
}

static void add_passage(const void *data, struct json *json, const char *key)
{
	json_open(json, key, '{');
	json_string(json, "said", data);
	json_close(json, '}');
}

/* Between two tables, so that what divides them is seen. */
static void write_passage(enum table_form form)
{
	static const struct table_column one[] = { { "N", TABLE_NUMBER } };
	static const struct table_passage passage = { .key = "says",
		                                      .title = "what it says",
		                                      .column = "Says",
		                                      .lines = "a, b\n\n  c\n",
		                                      .add = add_passage,
		                                      .data = "all" };
	struct table *table = start_table((struct table_options){ .form = form, .top = 1 }, true);

	assert_int_equal(table_passage(table, &passage, NULL), 0);
	table_begin(table, "b", "b", one, 1);
	table_u64(table, 7);
	table_end_row(table);
	table_end(table, NULL);
	assert_int_equal(table_passage(table, &passage, NULL), 0);
	finish_table(table);
}

static void test_a_passage_is_lines_rows_or_an_object(void **state)
{
	write_passage(TABLE_FORM_TEXT);
	assert_string_equal(text, "what it says\na, b\n\n  c\n\nb\n  N\n  7\n\n"
	                          "what it says\na, b\n\n  c\n");
	free(text);
	write_passage(TABLE_FORM_CSV);
	assert_string_equal(text, "Says\n\"a, b\"\n  c\n\nN\n7\n\nSays\n\"a, b\"\n  c\n");
	free(text);
	write_passage(TABLE_FORM_JSON);
	assert_string_equal(text, "{\n  \"says\": {\n    \"said\": \"all\"\n  },\n"
	                          "  \"b\": [\n    {\"N\": 7}\n  ],\n"
	                          "  \"says\": {\n    \"said\": \"all\"\n  }\n}\n");
	free(text);
}

static void test_top_leaves_rows_out_and_counts_them(void **state)
{
	struct table *table =
		start_table((struct table_options){ .form = TABLE_FORM_CSV, .top = 2 }, false);

	table_begin(table, NULL, NULL, columns, N_COLUMNS);
	for (int i = 0; i < 5; i++)
		add_full_row(table, "f");
	table_end(table, NULL);
	finish_table(table);
	assert_string_equal(told, "report: rows left out by --top: 3");
	free(text);
}

static void test_a_name_is_cut_to_the_terminal(void **state)
{
	static const struct table_column two[] = { { "N", TABLE_NUMBER }, { "Name", TABLE_TEXT } };
	struct table *table =
		start_table((struct table_options){ .form = TABLE_FORM_TEXT, .width = 40 }, false);

	table_begin(table, NULL, NULL, two, 2);
	table_u64(table, 7);
	table_text(table, "void gemm<float, 1, 2, 3, 4, 5, 6>(float const*, float*, unsigned int)");
	table_end_row(table);
	table_end(table, NULL);
	finish_table(table);
	assert_string_equal(text, "  N  Name\n  7  void gemm<...>(...)\n");
	free(text);
}

static void test_a_wide_cell_far_down_moves_only_its_row(void **state)
{
	static const struct table_column two[] = { { "N", TABLE_NUMBER }, { "Name", TABLE_TEXT } };
	struct table *table = start_table((struct table_options){ .form = TABLE_FORM_TEXT }, false);

	table_begin(table, NULL, NULL, two, 2);
	for (uint64_t i = 0; i < 600; i++) {
		table_u64(table, i == 500 ? 123456789 : i);
		table_text(table, "x");
		table_end_row(table);
	}
	table_end(table, NULL);
	finish_table(table);
	assert_has(text, "\n  499  x\n  123456789  x\n  501  x\n");
	free(text);
}

static void test_a_full_disk_is_told_at_the_end(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct table *table = table_open(&(struct table_options){ .out = full }, false);
	struct err err = { 0 };

	table_begin(table, NULL, NULL, columns, 1);
	for (int i = 0; i < 100000; i++) {
		table_u64(table, 1);
		table_end_row(table);
	}
	assert_int_equal(table_end(table, &err), -ENOSPC);
	assert_has(err.text, "cannot write the report: No space left on device");
	table_close(table);
	fclose(full);
}

static void test_large_rates_are_numbers_that_people_count_with(void **state)
{
	static const struct table_column rate[] = { { "Per Second", TABLE_REAL } };
	static const char *const expected[TABLE_FORM_COUNT] = {
		[TABLE_FORM_TEXT] = "244804\n",
		[TABLE_FORM_CSV] = "\n244804\n1234567\n",
		[TABLE_FORM_JSON] = ": 1234567}",
		[TABLE_FORM_HTML] = "[1234567]",
	};

	for (int form = 0; form < TABLE_FORM_COUNT; form++) {
		struct table *table = start_table((struct table_options){ .form = form }, false);

		table_begin(table, NULL, "x", rate, 1);
		table_real(table, 244803.9);
		table_end_row(table);
		table_real(table, 1234567.2);
		table_end_row(table);
		assert_int_equal(table_end(table, NULL), 0);
		finish_table(table);
		assert_has(text, expected[form]);
		assert_has_not(text, "e+0");
		free(text);
	}
}

/* For a script that knows no report: types beside the names, rows as lists, notes with them. */
static void test_html_tells_columns_rows_and_notes(void **state)
{
	static const struct table_column two[] = { { "Time", TABLE_DURATION },
		                                   { "Name", TABLE_TEXT } };
	struct table *table = start_table((struct table_options){ .form = TABLE_FORM_HTML }, true);

	for (int i = 0; i < 2; i++) {
		table_begin(table, i ? "more" : NULL, "a title", two, 2);
		table_u64(table, 7);
		table_text(table, i ? NULL : "a \"b\"");
		table_end_row(table);
		table_note_if(table, true, "a %s", "note");
		table_note_if(table, false, "a note on what is not so");
		assert_int_equal(table_end(table, NULL), 0);
	}
	finish_table(table);
	assert_has(text, "[{\"name\": \"Time (ns)\", \"type\": \"duration\"}, "
	                 "{\"name\": \"Name\", \"type\": \"text\"}]");
	assert_has(text, "\"rows\": [[7, \"a \\\"b\\\"\"]],\n    \"notes\": [\"a note\"]");
	assert_has(text, "\"key\": \"more\"");
	assert_has(text, "\"rows\": [[7, null]]");
	free(text);
}

static void test_html_of_parts_without_a_table_is_an_empty_list(void **state)
{
	struct table *table = start_table((struct table_options){ .form = TABLE_FORM_HTML }, true);

	finish_table(table);
	assert_string_equal(text, "[]");
	free(text);
}

static void test_a_note_can_do_nothing_to_a_terminal(void **state)
{
	static const struct table_column one[] = { { "Count", TABLE_NUMBER } };
	struct table *table = start_table((struct table_options){ 0 }, false);

	table_begin(table, NULL, "x", one, 1);
	table_note(table, "lost in %s", "\033]0;title\007\x9b\n31m");
	assert_int_equal(table_end(table, NULL), 0);
	finish_table(table);
	assert_has(text, "  lost in \\x1b]0;title\\x07\\x9b\\x0a31m\n");
	free(text);
}

/* ---- rows in an order ---------------------------------------------------------------------- */

static void add_keyed_row(struct table *table, uint64_t key, const char *name)
{
	table_u64(table, key);
	table_triple(table, (uint32_t[]){ 1, 2, (uint32_t)key });
	table_s64(table, -(int64_t)key);
	table_as(table, TABLE_BYTES);
	table_u64(table, 2048);
	table_real(table, 1234567);
	table_unknown(table);
	table_text(table, name);
	table_key(table, key);
	table_end_row(table);
}

static void write_ordered(struct table_options options)
{
	static const struct table_column ordered[] = {
		{ "Key", TABLE_NUMBER },  { "Grid", TABLE_TRIPLE }, { "Start", TABLE_TIME },
		{ "Some", TABLE_NUMBER }, { "Size", TABLE_MB },     { "Rate", TABLE_MB_RATE },
		{ "Name", TABLE_TEXT },
	};
	struct table *table = start_table(options, false);
	struct err err = { 0 };

	table_begin(table, NULL, "ordered", ordered, ARRAY_SIZE(ordered));
	table_in_order(table);
	add_keyed_row(table, 7000000, "a name that is long enough to be kept only once");
	add_keyed_row(table, 3000000, "three");
	add_keyed_row(table, 7000000, "a name that is long enough to be kept only once");
	add_keyed_row(table, 5000000, "");
	assert_int_equal(table_end(table, &err), 0);
	finish_table(table);
}

static void test_rows_come_in_the_order_of_their_keys(void **state)
{
	write_ordered((struct table_options){ .form = TABLE_FORM_CSV });
	assert_string_equal(text, "Key,Grid,Start (ns),Some,Size (MB),Rate (MB/s),Name\n"
	                          "3000000,1 2 3000000,-3000000,2048,1.235,,three\n"
	                          "5000000,1 2 5000000,-5000000,2048,1.235,,\n"
	                          "7000000,1 2 7000000,-7000000,2048,1.235,,"
	                          "a name that is long enough to be kept only once\n"
	                          "7000000,1 2 7000000,-7000000,2048,1.235,,"
	                          "a name that is long enough to be kept only once\n");
	free(text);
}

static void test_of_ordered_rows_the_first_are_the_top(void **state)
{
	write_ordered((struct table_options){ .form = TABLE_FORM_TEXT, .top = 2 });
	assert_string_equal(
		text, "ordered\n"
		      "      Key           Grid  Start (ms)      Some  Size (MB)  Rate (MB/s)  "
		      "Name\n"
		      "  3000000  (1,2,3000000)      -3.000  2.00 KiB      1.235            -  "
		      "three\n"
		      "  5000000  (1,2,5000000)      -5.000  2.00 KiB      1.235            -  \n"
		      "  rows left out by --top: 2\n");
	free(text);
}

/* Names of equal beginnings, numbers of three kinds, and what is unknown. */
static void write_sorted(enum table_form form, const char *sort, size_t top)
{
	static const struct table_column two[] = { { "Num Calls", TABLE_NUMBER },
		                                   { "Name", TABLE_TEXT } };
	static const char *const names[] = { "cudaMemcpyAsync", "cuInit", "cudaMemcpy", NULL };
	struct table *table = start_table(
		(struct table_options){ .form = form, .sort = sort, .top = top }, false);
	struct err err = { 0 };

	table_begin(table, NULL, "x", two, 2);
	for (int i = 0; i < 4; i++) {
		if (i == 1)
			table_unknown(table);
		else if (i == 2)
			table_real(table, 2.5);
		else
			table_u64(table, i ? 7 : 1);
		table_text(table, names[i]);
		table_end_row(table);
	}
	table_end(table, &err);
	finish_table(table);
}

static void test_rows_go_by_a_column(void **state)
{
	write_sorted(TABLE_FORM_CSV, "num_calls", 0);
	assert_string_equal(text,
	                    "Num Calls,Name\n7,\n2.5,cudaMemcpy\n1,cudaMemcpyAsync\n,cuInit\n");
	free(text);
	write_sorted(TABLE_FORM_CSV, "Num Calls:asc", 2);
	assert_string_equal(text, "Num Calls,Name\n1,cudaMemcpyAsync\n2.5,cudaMemcpy\n");
	free(text);
	write_sorted(TABLE_FORM_JSON, "NAME", 3);
	assert_has(text, "\"cuInit\"},\n  {\"Num Calls\": 2.5, \"Name\": \"cudaMemcpy\"},\n"
	                 "  {\"Num Calls\": 1, \"Name\": \"cudaMemcpyAsync\"}\n");
	free(text);
	write_sorted(TABLE_FORM_TEXT, "name:desc", 0);
	assert_has(text, "cudaMemcpyAsync\n          3  cudaMemcpy\n          -  cuInit\n"
	                 "          7  -\n  rows by Name, from Z to A (--sort)\n");
	free(text);
}

static void test_a_column_that_is_not_there_is_told_with_those_that_are(void **state)
{
	static const struct table_column two[] = { { "Count", TABLE_NUMBER },
		                                   { "Name", TABLE_TEXT } };
	struct table *table = start_table((struct table_options){ .sort = "Cuont" }, false);
	struct err err = { 0 };

	table_begin(table, NULL, "x", two, 2);
	table_u64(table, 1);
	table_text(table, "cuInit");
	table_end_row(table);
	assert_int_equal(table_end(table, &err), -EINVAL);
	assert_string_equal(err.text,
	                    "--sort: report has no column 'Cuont'; its columns are Count, Name");
	table_close(table);
	fclose(out);
	assert_string_equal(text, "");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_has_units_and_is_aligned),
		cmocka_unit_test(test_csv_has_raw_numbers_and_units_in_its_headings),
		cmocka_unit_test(test_csv_quotes_what_holds_commas_and_quotes),
		cmocka_unit_test(test_json_is_an_array_of_objects),
		cmocka_unit_test(test_tables_without_rows),
		cmocka_unit_test(test_parts_are_members_of_one_object),
		cmocka_unit_test(test_a_passage_is_lines_rows_or_an_object),
		cmocka_unit_test(test_top_leaves_rows_out_and_counts_them),
		cmocka_unit_test(test_a_name_is_cut_to_the_terminal),
		cmocka_unit_test(test_large_rates_are_numbers_that_people_count_with),
		cmocka_unit_test(test_a_wide_cell_far_down_moves_only_its_row),
		cmocka_unit_test(test_a_full_disk_is_told_at_the_end),
		cmocka_unit_test(test_rows_go_by_a_column),
		cmocka_unit_test(test_a_column_that_is_not_there_is_told_with_those_that_are),
		cmocka_unit_test(test_html_tells_columns_rows_and_notes),
		cmocka_unit_test(test_html_of_parts_without_a_table_is_an_empty_list),
		cmocka_unit_test(test_a_note_can_do_nothing_to_a_terminal),
		cmocka_unit_test(test_rows_come_in_the_order_of_their_keys),
		cmocka_unit_test(test_of_ordered_rows_the_first_are_the_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
