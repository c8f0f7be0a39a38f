// SPDX-License-Identifier: MIT
/* Errors by function and code: each failure counts once, and one user leaves room for others. */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/sources.h"

#define GONE 4194303u /* no process has this number: whose it is, is not known */

static struct process processes[2] = { { .id = 1, .pid = GONE }, { .id = 2 } };
static const struct function function = { .name = "cuLaunchKernel", .layer = LAYER_DRIVER };
static struct watch_result rows[256];
static size_t n_rows;

static void row(int of, int code, uint64_t count, uint64_t before)
{
	rows[n_rows++] = (struct watch_result){ .process = &processes[of],
		                                .function = &function,
		                                .result = code,
		                                .count = count,
		                                .before = before };
}

/* What a page with the rows so far makes of the metric, as text. */
static char *page(void *state)
{
	static const struct node_settings settings;
	const struct watch_results results = { rows, n_rows };
	const struct watch_page page = { .results = &results };
	const struct node_view view = { .settings = &settings, .page = &page };
	struct metrics *metrics = metrics_new();
	struct buf out = { 0 };

	source_errors.fill(state, &view, metrics);
	metrics_write(metrics, METRICS_TEXT, &out);
	metrics_free(metrics);
	n_rows = 0;
	return out.data;
}

static long value_of(const char *text, const char *code)
{
	char label[64];
	const char *at;

	snprintf(label, sizeof(label), "code=\"%s\"} ", code);
	at = strstr(text, label);
	return at ? atol(at + strlen(label)) : -1;
}

static void test_a_user_leaves_room_for_others(void **state)
{
	void *source = source_errors.begin(NULL);
	char *text;

	processes[1].pid = (uint32_t)getpid(); /* root's, where tests are root's */
	for (int code = 20000; code < 20060; code++)
		row(0, code, 1, 0);
	text = page(source);
	assert_int_equal(value_of(text, "20019"), 1);
	assert_int_equal(value_of(text, "20020"), -1);
	assert_int_equal(value_of(text, "other"), 40);
	free(text);
	row(1, 20050, 7, 0);
	text = page(source);
	assert_int_equal(value_of(text, "20050"), 7);
	assert_int_equal(value_of(text, "other"), 40);
	free(text);
	source_errors.end(source);
}

/* Its number may be another's by then: root's, who has no share. */
static void test_who_has_ended_is_nobody_in_particular(void **state)
{
	void *source = source_errors.begin(NULL);
	char *text;

	processes[1].pid = (uint32_t)getpid();
	for (int code = 20000; code < 20060; code++) {
		row(1, code, 1, 0);
		rows[n_rows - 1].ended = true;
	}
	text = page(source);
	assert_int_equal(value_of(text, "other"), 40);
	free(text);
	source_errors.end(source);
}

static void test_each_failure_counts_once(void **state)
{
	void *source = source_errors.begin(NULL);
	char *text;

	row(0, 20000, 3, 0);
	free(page(source));
	row(0, 20000, 5, 3);
	free(page(source));
	row(1, 20000, 6, 5); /* as a row of those that have ended, and one more */
	text = page(source);
	assert_int_equal(value_of(text, "20000"), 6);
	free(text);
	source_errors.end(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_leaves_room_for_others),
		cmocka_unit_test(test_who_has_ended_is_nobody_in_particular),
		cmocka_unit_test(test_each_failure_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
