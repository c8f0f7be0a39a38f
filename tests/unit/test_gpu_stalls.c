// SPDX-License-Identifier: MIT
/* Why kernels wait, as agents tell it: events, and nothing of what makes no sense. */
#include "gpu_scene.h"

static struct stall last;
static char last_reason[64], last_file[256];
static size_t n_stalls;

static int keep_stall(struct consumer *self, const struct event *event, struct err *err)
{
	if (event->type != EVENT_STALL)
		return 0;
	last = *event->stall;
	snprintf(last_reason, sizeof(last_reason), "%s", last.reason ? last.reason : "");
	snprintf(last_file, sizeof(last_file), "%s", last.file ? last.file : "");
	n_stalls++;
	return 0;
}

static const struct consumer_ops keeper_ops = { .event = keep_stall, .stalls = true };
static struct consumer keeper = { &keeper_ops };

static int make_with_keeper(void **state)
{
	struct scene *scene;
	struct pipeline_options options;

	make(state);
	scene = *state;
	gpu_free(scene->gpu);
	scene->gpu = NULL;
	pipeline_free(scene->feed->pipeline);
	scene->feed->consumers[1] = &keeper;
	options = (struct pipeline_options){ .state = &scene->feed->state,
		                             .consumers = scene->feed->consumers,
		                             .n_consumers = 2,
		                             .correlate = scene->correlate };
	scene->feed->pipeline = pipeline_new(&options);
	scene->settings.kinds |= AGENT_WANT_STALLS;
	open_gpu(scene, TARGET_PIDS);
	n_stalls = 0;
	turn(scene, MS(100));
	tell(name_words(1, "_Z3addPf"));
	tell(name_words(2, "long_scoreboard"));
	tell(name_words(3, "/home/user/add.cu"));
	return 0;
}

static union agent_words stall_words(void)
{
	union agent_words words = words_of(AGENT_STALL, sizeof(struct agent_stall));

	words.stall.begin_ns = START + MS(10);
	words.stall.end_ns = START + MS(30);
	words.stall.cubin = 77;
	words.stall.offset = 0x1b0;
	words.stall.samples = 1000;
	words.stall.kernel = 1;
	words.stall.reason = 2;
	words.stall.file = 3;
	words.stall.line = 88;
	return words;
}

static void test_a_stall_is_passed_on_as_it_was_told(void **state)
{
	tell(stall_words());
	assert_int_equal(n_stalls, 1);
	assert_string_equal(last.kernel->name, "add(float*)");
	assert_string_equal(last_reason, "long_scoreboard");
	assert_string_equal(last_file, "/home/user/add.cu");
	assert_int_equal(last.line, 88);
	assert_int_equal(last.offset, 0x1b0);
	assert_int_equal(last.samples, 1000);
	assert_int_equal(last.end_ns - last.begin_ns, MS(20));
}

static void test_a_window_tells_what_was_lost(void **state)
{
	union agent_words words = words_of(AGENT_STALL_WINDOW, sizeof(struct agent_stall_window));

	words.stall_window.begin_ns = START + MS(10);
	words.stall_window.end_ns = START + MS(30);
	words.stall_window.samples = 1200;
	words.stall_window.dropped = 30;
	words.stall_window.foreign = 170;
	tell(words);
	assert_int_equal(n_stalls, 1);
	assert_null(last.kernel);
	assert_int_equal(last.dropped, 30);
	assert_int_equal(last.foreign, 170);
	assert_int_equal(missed_kind, MISS_STALLS);
	assert_non_null(strstr(missed, "wait were lost"));
}

/* Tells it, and that it was counted and not passed on. */
static void refused(struct scene *scene, union agent_words words)
{
	uint64_t before = lost(scene, LOST_GPU_RECORDS);

	tell(words);
	assert_int_equal(n_stalls, 0);
	assert_int_equal(lost(scene, LOST_GPU_RECORDS), before + 1);
}

static void test_what_makes_no_sense_is_counted(void **state)
{
	union agent_words words = stall_words();

	words.stall.kernel = 9;
	refused(*state, words);
	words = stall_words();
	words.stall.reason = 9;
	refused(*state, words);
	words = stall_words();
	words.stall.samples = STALL_SAMPLES_MOST + 1;
	refused(*state, words);
	words = stall_words();
	words.stall.end_ns = words.stall.begin_ns - 1;
	refused(*state, words);
	words = stall_words();
	words.stall.end_ns = START + MS(100000);
	refused(*state, words);
	words = stall_words();
	words.stall.begin_ns = START - 1; /* before cuscope came */
	refused(*state, words);
	words = words_of(AGENT_STALLS_TOLD, sizeof(struct agent_stalls_told));
	words.stalls_told.what = AGENT_STALLS_WHATS;
	refused(*state, words);
	words.stalls_told.what = AGENT_STALLS_REFUSED;
	words.stalls_told.first = AGENT_STALLS_INS;
	refused(*state, words);
	words = words_of(AGENT_STALL, sizeof(struct agent_stall) - 8);
	refused(*state, words);
}

static void test_windows_before_the_agent_measured_are_counted(void **state)
{
	struct scene *scene = *state;
	union agent_words words = words_of(AGENT_STALL_WINDOW, sizeof(struct agent_stall_window));

	agent_is(AGENT_RUNNING, NULL); /* since 12 ms after the begin */
	words.stall_window.begin_ns = START + MS(11);
	words.stall_window.end_ns = START + MS(31);
	refused(scene, words);
	words.stall_window.begin_ns = START + MS(12);
	tell(words);
	assert_int_equal(n_stalls, 1);
}

static void test_a_file_that_was_not_named_is_none(void **state)
{
	union agent_words words = stall_words();

	words.stall.file = 9;
	tell(words);
	assert_int_equal(n_stalls, 1);
	assert_null(last.file);
	assert_int_equal(last.line, 0);
}

static void test_what_keeps_a_process_from_it_is_told(void **state)
{
	const struct scene *scene = *state;
	union agent_words words = words_of(AGENT_STALLS_TOLD, sizeof(struct agent_stalls_told));

	words.stalls_told.what = AGENT_STALLS_MEMORY;
	words.stalls_told.first = 100 << 20;
	words.stalls_told.second = 1088 << 20;
	tell(words);
	assert_int_equal(missed_kind, MISS_STALLS);
	assert_non_null(strstr(missed, "100.00 MiB free"));
	assert_non_null(strstr(scene->notices, "no stall reasons of process"));
	words.stalls_told.what = AGENT_STALLS_SLOW;
	words.stalls_told.first = MS(916);
	words.stalls_told.second = AGENT_STALLS_IN_STOPPING;
	tell(words);
	assert_non_null(strstr(missed, "took 916 ms"));
	assert_int_equal(n_stalls, 0);
}

static void test_each_thing_is_told_once_whatever_its_numbers_are(void **state)
{
	const struct scene *scene = *state;
	union agent_words words = words_of(AGENT_STALLS_TOLD, sizeof(struct agent_stalls_told));

	words.stalls_told.what = AGENT_STALLS_MEMORY;
	for (uint64_t i = 0; i < 1000; i++) {
		words.stalls_told.first = i;
		tell(words);
	}
	assert_int_equal(scene->n_notices, 1);
	assert_int_equal(lost(scene, LOST_GPU_RECORDS), 999);
}

static void test_nobody_asked_nobody_is_told(void **state)
{
	struct scene *scene = *state;
	union agent_words words = words_of(AGENT_STALLS_TOLD, sizeof(struct agent_stalls_told));

	scene->settings.kinds &= ~(uint32_t)AGENT_WANT_STALLS;
	words.stalls_told.what = AGENT_STALLS_MEMORY;
	refused(scene, words);
	refused(scene, stall_words());
	assert_int_equal(scene->n_notices, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_with_keeper, destroy)
		TEST(test_a_stall_is_passed_on_as_it_was_told),
		TEST(test_a_window_tells_what_was_lost),
		TEST(test_what_makes_no_sense_is_counted),
		TEST(test_windows_before_the_agent_measured_are_counted),
		TEST(test_a_file_that_was_not_named_is_none),
		TEST(test_what_keeps_a_process_from_it_is_told),
		TEST(test_each_thing_is_told_once_whatever_its_numbers_are),
		TEST(test_nobody_asked_nobody_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
