// SPDX-License-Identifier: MIT
/* The exposition of metrics: both formats, labels that anybody chose, numbers. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "node/metrics.h"

static const struct metric_family calls = { "t_calls", METRIC_COUNTER, NULL, "Calls" };
static const struct metric_family seconds = { "t_busy_seconds", METRIC_COUNTER, "seconds",
	                                      "Time, with a \\ and\na line" };
static const struct metric_family heat = { "t_heat", METRIC_GAUGE, NULL, "Heat" };
static const struct metric_family build = { "t_build", METRIC_INFO, NULL, "Version" };
static const struct metric_family empty = { "t_empty", METRIC_GAUGE, NULL, "Nothing" };

static char *written(struct metrics *metrics, enum metrics_format format)
{
	struct buf out = { 0 };

	metrics_write(metrics, format, &out);
	return out.data;
}

static struct metrics *scene(void)
{
	struct metrics *m = metrics_new();
	metric_labels base = metrics_labels(m, 0, "pid", "7", NULL);

	metrics_family(m, &calls);
	metrics_add(m, base, 3, 0, 1700000000123456789ull);
	metrics_add(m, metrics_labels(m, base, "kind", "a", NULL), 4, 0, 0);
	metrics_family(m, &empty);
	metrics_family(m, &seconds);
	metrics_add(m, 0, 1234567890123ull, 9, 0);
	metrics_family(m, &heat);
	metrics_add_real(m, 0, -1.5);
	metrics_add_real(m, base, NAN);
	metrics_family(m, &build);
	metrics_add(m, metrics_labels(m, 0, "version", "1", NULL), 1, 0, 0);
	return m;
}

static void test_text(void **state)
{
	struct metrics *m = scene();
	char *text = written(m, METRICS_TEXT);

	assert_string_equal("# TYPE t_calls_total counter\n# HELP t_calls_total Calls\n"
	                    "t_calls_total{pid=\"7\"} 3\nt_calls_total{pid=\"7\",kind=\"a\"} 4\n"
	                    "# TYPE t_busy_seconds_total counter\n"
	                    "# HELP t_busy_seconds_total Time, with a \\\\ and\\na line\n"
	                    "t_busy_seconds_total 1234.567890123\n"
	                    "# TYPE t_heat gauge\n# HELP t_heat Heat\nt_heat -1.5\n"
	                    "t_heat{pid=\"7\"} NaN\n# TYPE t_build_info gauge\n"
	                    "# HELP t_build_info Version\nt_build_info{version=\"1\"} 1\n",
	                    text);
	free(text);
	metrics_free(m);
}

/* Or nobody reads what there is: labels hold names that processes make up. */
static void test_labels_that_are_alike_are_one_series(void **state)
{
	static const struct metric_family other = { "t_other", METRIC_COUNTER, NULL, "Other" };
	struct metrics *m = metrics_new();
	char name[16], *text;
	unsigned there = 0;

	metrics_family(m, &calls);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%u", i % 500);
		metrics_add(m, metrics_labels(m, 0, "pid", name, NULL), 1, 0, 0);
	}
	metrics_add(m, metrics_labels(m, 0, "function", "a\1", NULL), 1, 0, 0);
	metrics_add(m, metrics_labels(m, 0, "function", "a\2", NULL), 2, 0, 0);
	metrics_family(m, &other); /* has its own */
	metrics_add(m, metrics_labels(m, 0, "pid", "499", NULL), 7, 0, 0);
	metrics_family(m, &build);
	metrics_add(m, metrics_labels(m, 0, "version", "1", NULL), 1, 0, 0);
	metrics_add(m, metrics_labels(m, 0, "version", "1", NULL), 1, 0, 0);
	text = written(m, METRICS_TEXT);
	assert_non_null(strstr(text, "\nt_calls_total{pid=\"499\"} 2\n"));
	assert_non_null(strstr(text, "\nt_other_total{pid=\"499\"} 7\n"));
	for (const char *at = text; (at = strstr(at, "pid=\"499\"")); at++)
		there++;
	assert_int_equal(there, 2);
	assert_non_null(strstr(text, "t_calls_total{function=\"a\xef\xbf\xbd\"} 3\n"));
	assert_non_null(strstr(text, "t_build_info{version=\"1\"} 1\n"));
	assert_string_equal(strstr(text, "t_build_info{") + 1, "_build_info{version=\"1\"} 1\n");
	free(text);
	metrics_free(m);
}

static void test_openmetrics(void **state)
{
	struct metrics *m = scene();
	char *text = written(m, METRICS_OPENMETRICS);

	assert_string_equal("# TYPE t_calls counter\n# HELP t_calls Calls\n"
	                    "t_calls_total{pid=\"7\"} 3\n"
	                    "t_calls_created{pid=\"7\"} 1700000000.123\n"
	                    "t_calls_total{pid=\"7\",kind=\"a\"} 4\n"
	                    "# TYPE t_busy_seconds counter\n# UNIT t_busy_seconds seconds\n"
	                    "# HELP t_busy_seconds Time, with a \\\\ and\\na line\n"
	                    "t_busy_seconds_total 1234.567890123\n"
	                    "# TYPE t_heat gauge\n# HELP t_heat Heat\nt_heat -1.5\n"
	                    "t_heat{pid=\"7\"} NaN\n# TYPE t_build info\n# HELP t_build Version\n"
	                    "t_build_info{version=\"1\"} 1\n# EOF\n",
	                    text);
	free(text);
	metrics_free(m);
}

/* What a value becomes between its quotes. */
static char *escaped(const char *value)
{
	struct metrics *m = metrics_new();
	char *text, *begin, *end, *copy;

	metrics_family(m, &heat);
	metrics_add(m, metrics_labels(m, 0, "a", value, "b", "", NULL), 1, 0, 0);
	text = written(m, METRICS_TEXT);
	begin = strstr(text, "{a=\"");
	assert_non_null(begin);
	end = strstr(begin, "\"} 1\n");
	assert_non_null(end);
	copy = strndup(begin + 4, (size_t)(end - begin - 4));
	free(text);
	metrics_free(m);
	return copy;
}

static void test_hostile_labels(void **state)
{
	static const char *const cases[][2] = {
		{ "plain", "plain" },
		{ "a\"b\\c\nd", "a\\\"b\\\\c\\nd" },
		{ "\"} 9\nt_calls_total 99", "\\\"} 9\\nt_calls_total 99" },
		{ "\xff\xc3(", "\xef\xbf\xbd\xef\xbf\xbd(" },
		{ "\x1b[31m\r\x07", "\xef\xbf\xbd[31m\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe2\x80\xae"
		  "x",
		  "\xef\xbf\xbdx" },
		{ "\xc3\xbc", "\xc3\xbc" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = escaped(cases[i][0]);

		assert_string_equal(cases[i][1], text);
		free(text);
	}
}

/* Not in the middle of a character. */
static void test_long_labels_are_cut(void **state)
{
	char value[600], *text;

	memset(value, 'x', 255);
	strcpy(value + 255, "\xc3\xbc and more");
	text = escaped(value);
	assert_int_equal(255, strlen(text));
	free(text);
}

static void test_accept(void **state)
{
	static const char prometheus[] =
		"application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3";

	assert_int_equal(METRICS_TEXT, metrics_accepted(NULL));
	assert_int_equal(METRICS_TEXT, metrics_accepted("*/*"));
	assert_int_equal(METRICS_OPENMETRICS, metrics_accepted(prometheus));
	assert_int_equal(METRICS_TEXT,
	                 metrics_accepted("application/openmetrics-text;q=0,*/*;q=1"));
	assert_int_equal(METRICS_OPENMETRICS,
	                 metrics_accepted("text/plain;q=0,application/openmetrics-text"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_that_are_alike_are_one_series),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_openmetrics),
		cmocka_unit_test(test_hostile_labels),
		cmocka_unit_test(test_long_labels_are_cut),
		cmocka_unit_test(test_accept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
