// SPDX-License-Identifier: MIT
/* What the node agent tells of itself: its cost, what it lost, which files it has hooked. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "node/http.h"
#include "node/metrics.h"
#include "node/sources.h"

struct scene {
	struct watch_page page;
	uint64_t lost[LOST_COUNT];
	struct http_figures http;
	struct node_view view;
	void *source;
	char *text;
};

static struct scene scene;

static int set_up(void **state)
{
	memset(&scene, 0, sizeof(scene));
	scene.page.lost = scene.lost;
	scene.view.page = &scene.page;
	scene.view.http = &scene.http;
	scene.view.started_ns = 1700000000123456789ull;
	scene.source = source_self.begin(NULL);
	return 0;
}

static int tear_down(void **state)
{
	free(scene.source);
	free(scene.text);
	return 0;
}

static void tell(void)
{
	struct metrics *metrics = metrics_new();
	struct buf out = { 0 };

	source_self.fill(scene.source, &scene.view, metrics);
	metrics_write(metrics, METRICS_TEXT, &out);
	metrics_free(metrics);
	free(scene.text);
	scene.text = out.data;
}

/* A line of its own, so that no longer number is taken for it. */
static void assert_told(const char *series, unsigned long long value)
{
	char line[160];

	snprintf(line, sizeof(line), "\n%s %llu\n", series, value);
	if (!strstr(scene.text, line))
		fail_msg("not told: %s in\n%s", line, scene.text);
}

static void test_losses_have_their_reasons_and_sums_those_that_no_map_had_room_for(void **state)
{
	for (size_t i = 0; i < LOST_COUNT; i++)
		scene.lost[i] = 100 + i;
	scene.lost[LOST_SUMS] += 5000;
	tell();
	assert_told("cuscope_lost_events_total{reason=\"ring_full\"}", 100 + LOST_RING_FULL);
	assert_told("cuscope_lost_events_total{reason=\"records\"}", 100 + LOST_RECORDS);
	assert_told("cuscope_lost_events_total{reason=\"sums\"}", 5100 + LOST_SUMS);
	assert_told("cuscope_lost_events_total{reason=\"over_budget\"}", 100 + LOST_OVER_BUDGET);
	assert_null(strstr(scene.text, "gpu"));
}

static void test_stacks_that_were_lost(void **state)
{
	const struct watch_memory memory = { .no_stack = 6, .too_fast = 5 };

	tell();
	assert_told("cuscope_agent_stacks_lost_total{why=\"no_room\"}", 0);
	scene.page.memory = &memory;
	tell();
	assert_told("cuscope_agent_stacks_lost_total{why=\"no_room\"}", 6);
	assert_told("cuscope_agent_stacks_lost_total{why=\"too_fast\"}", 5);
}

static void test_files_that_were_hooked_and_let_go(void **state)
{
	scene.page.hooked_files = 7;
	scene.page.let_go_files = 3;
	scene.page.refused_files = 2;
	scene.page.bypassed_files = 3;
	scene.page.unseen = 9;
	tell();
	assert_told("cuscope_agent_hooked_files", 7);
	assert_told("cuscope_agent_unhooked_files_total", 3);
	assert_told("cuscope_agent_refused_files_total", 2);
	assert_told("cuscope_agent_bypassed_files_total", 3);
	assert_told("cuscope_unseen_processes", 9);
}

static void test_requests_and_turns(void **state)
{
	scene.http = (struct http_figures){ .answered = 11, .refused = 4, .evicted = 6 };
	scene.page.turns_cut = 8;
	tell();
	assert_told("cuscope_agent_requests_total{outcome=\"answered\"}", 11);
	assert_told("cuscope_agent_requests_total{outcome=\"refused\"}", 4);
	assert_told("cuscope_agent_connections_ended_total", 6);
	assert_told("cuscope_agent_turns_cut_total", 8);
}

static unsigned long long told(const char *series)
{
	char line[80];
	const char *at;

	snprintf(line, sizeof(line), "\n%s ", series);
	at = strstr(scene.text, line);
	assert_non_null(at);
	return strtoull(at + strlen(line), NULL, 10);
}

static void test_its_own_memory_and_files(void **state)
{
	unsigned long long files;
	FILE *one;

	tell();
	files = told("cuscope_agent_open_files");
	assert_in_range(told("cuscope_agent_resident_bytes"), 100000, 1ull << 32);
	assert_int_equal(told("cuscope_agent_start_time_seconds"), 1700000000);
	one = fopen("/proc/self/stat", "re");
	assert_non_null(one);
	tell();
	fclose(one);
	assert_int_equal(told("cuscope_agent_open_files"), files + 1);
	scene.page.code_bytes = 1 << 20;
	scene.view.snapshots = 1;
	tell();
	assert_in_range(told("cuscope_agent_bpf_bytes"), 1 << 20, 1 << 21);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_losses_have_their_reasons_and_sums_those_that_no_map_had_room_for),
		TEST(test_stacks_that_were_lost),
		TEST(test_files_that_were_hooked_and_let_go),
		TEST(test_requests_and_turns),
		TEST(test_its_own_memory_and_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
