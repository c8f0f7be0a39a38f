// SPDX-License-Identifier: MIT
/* What lies across the borders of a part of a trace, where times are added up. */
#include "stack_events.h"
#include "trace_events.h"

#include "base/array.h"
#include "base/buf.h"
#include "trace/filter.h"

static const struct process *process;

static void add_sample(struct kept_list *list, double end_us, double us, enum sample_kind kind,
                       enum blocked blocked)
{
	struct sample sample = sample_of(kind, us, NULL);
	struct event event = sample_event(process, process->pid, end_us, &sample);

	sample.blocked = blocked;
	sample.count = blocked >= BLOCKED_BRIEF ? 3 : 0;
	keep_event(list, &event);
}

static void add_blocked(struct kept_list *list, double begin_us, double end_us)
{
	add_sample(list, end_us, end_us - begin_us, SAMPLE_OFF_CPU, BLOCKED_WOKEN);
}

static void add_activity(struct kept_list *list, double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_SET,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };
	struct event event = { .type = EVENT_ACTIVITY,
		               .time_ns = activity.end_ns,
		               .process = process,
		               .activity = &activity };

	keep_event(list, &event);
}

static int open_scratch(void *data, const char **name, struct err *err)
{
	*(int *)data = memory_file();
	*name = "scratch";
	return dup(*(int *)data);
}

/* A chunk for each event, after one of a process at 1 us: there the run begins. */
static int write_chunks(struct kept_list *list)
{
	struct event first = { .type = EVENT_PROCESS, .time_ns = US(1), .process = process };
	int fd = -1;
	struct writer_window options = { .open = open_scratch, .data = &fd };
	struct consumer *writer = writer_new_window(&options);
	struct run_info run = default_run_info();
	struct err err = { 0 };

	assert_int_equal(writer->ops->begin(writer, &run, &err), 0);
	assert_int_equal(writer->ops->event(writer, &first, &err), 0);
	for (size_t i = 0; i < list->count; i++) {
		struct event event = event_of(&list->at[i]);

		if (fd >= 0)
			close(fd);
		assert_int_equal(writer->ops->event(writer, &event, &err), 0);
		assert_int_equal(writer_snapshot(writer, &run, &err), 0);
	}
	writer->ops->free(writer);
	free(list->at);
	return fd;
}

/* "blocked 100-150 work 120-150 moment 140", in microseconds of what is read. */
static void assert_part(struct kept_list *list, double from_us, double to_us, const char *expected)
{
	struct trace_read_options options = { .from_ns = from_us ? US(from_us) : 0,
		                              .to_ns = to_us ? US(to_us) : 0,
		                              .cut = true };
	int fd = write_chunks(list);
	struct buf text = { 0 };
	struct keeper keeper;

	trace_close(read_list(fd, &options, &keeper));
	for (size_t i = 1; i < keeper.list.count; i++) {
		struct event event = event_of(&keeper.list.at[i]);
		uint64_t begin_ns = cut_begin_ns(&event);
		const char *what = event.type == EVENT_ACTIVITY       ? "work"
		                   : event.sample->kind == SAMPLE_CPU ? "cpu"
		                   : event.sample->count              ? "sum"
		                                                      : "blocked";

		if (event.activity)
			assert_int_equal(event.activity->end_ns, event.time_ns);
		buf_printf(&text, "%s%s %g", i > 1 ? " " : "", what,
		           (double)(begin_ns - US(0)) / 1000);
		if (begin_ns != event.time_ns)
			buf_printf(&text, "-%g", (double)(event.time_ns - US(0)) / 1000);
		else
			buf_printf(&text, ":%g", (double)event.sample->weight_ns / 1000);
	}
	assert_string_equal(text.data ? text.data : "", expected);
	buf_free(&text);
	keeper_free(&keeper);
	close(fd);
}

static void test_a_blocked_stretch_is_cut_at_both_borders(void **state)
{
	struct kept_list list = { 0 };

	add_blocked(&list, 10, 90);   /* before */
	add_blocked(&list, 20, 100);  /* up to the begin */
	add_blocked(&list, 50, 150);  /* into it */
	add_blocked(&list, 160, 190); /* in it */
	add_blocked(&list, 180, 230); /* out of it */
	add_blocked(&list, 20, 300);  /* around it */
	add_blocked(&list, 200, 310); /* after */
	assert_part(&list, 100, 200,
	            "blocked 100-150 blocked 160-190 blocked 180-200 blocked 100-200");
}

/* What is left of the part at the end in which only a CPU was waited for. */
static void test_the_runnable_part_of_a_stretch_is_cut_with_it(void **state)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, 100, NULL); /* 100 to 200, of these */
	struct event event = sample_event(process, process->pid, 200, &sample);
	static const struct {
		double from, to, us;
	} cuts[] = {
		{ 0, 300, 30 },   /* none: runnable from 170 on */
		{ 120, 300, 30 }, /* before it */
		{ 180, 300, 20 }, /* in it */
		{ 120, 180, 10 }, { 120, 170, 0 }, { 180, 190, 10 },
	};
	struct cut_event cut;

	(void)state;
	sample.blocked = BLOCKED_WOKEN;
	sample.runnable_ns = 30000;
	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		const struct event *part =
			cut_to_part(&event, US(cuts[i].from), US(cuts[i].to), &cut);

		assert_non_null(part);
		assert_int_equal(part->sample->runnable_ns, (uint64_t)(cuts[i].us * 1000));
		assert_true(part->sample->runnable_ns <= part->sample->weight_ns);
	}
}

static void test_work_is_cut_as_well(void **state)
{
	struct kept_list list = { 0 };

	add_activity(&list, 50, 150);
	add_activity(&list, 160, 190);
	add_activity(&list, 180, 500);
	assert_part(&list, 100, 200, "work 100-150 work 160-190 work 180-200");
}

static void test_one_border_is_enough(void **state)
{
	struct kept_list list = { 0 };

	add_blocked(&list, 50, 150);
	add_blocked(&list, 160, 250);
	assert_part(&list, 100, 0, "blocked 100-150 blocked 160-250");
	list = (struct kept_list){ 0 };
	add_blocked(&list, 50, 150);
	add_blocked(&list, 160, 250);
	assert_part(&list, 0, 200, "blocked 50-150 blocked 160-200");
}

/* A moment of a CPU stands for the time between two; a sum of stretches has no place. */
static void test_what_has_no_length_is_whole(void **state)
{
	struct kept_list list = { 0 };

	add_sample(&list, 90, 20, SAMPLE_CPU, BLOCKED_UNKNOWN);
	add_sample(&list, 105, 20, SAMPLE_CPU, BLOCKED_UNKNOWN);
	add_sample(&list, 110, 70, SAMPLE_OFF_CPU, BLOCKED_BRIEF);
	add_sample(&list, 120, 80, SAMPLE_OFF_CPU, BLOCKED_SKIPPED);
	add_sample(&list, 205, 20, SAMPLE_CPU, BLOCKED_UNKNOWN);
	assert_part(&list, 100, 200, "cpu 105:20 sum 110:70 sum 120:80");
}

static void test_threads_that_were_blocked_before_or_to_the_end_are_cut(void **state)
{
	struct kept_list list = { 0 };

	add_sample(&list, 150, 140, SAMPLE_OFF_CPU, BLOCKED_BEFORE);
	add_sample(&list, 400, 220, SAMPLE_OFF_CPU, BLOCKED_STILL);
	assert_part(&list, 100, 200, "blocked 100-150 blocked 180-200");
}

/* --last: the run begins where its last part does. */
static void test_nothing_begins_before_the_run(void **state)
{
	struct kept_list list = { 0 };

	add_sample(&list, 10, 10000, SAMPLE_OFF_CPU, BLOCKED_WOKEN);
	assert_part(&list, 0, 0, "blocked 1-10");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_blocked_stretch_is_cut_at_both_borders),
		cmocka_unit_test(test_the_runnable_part_of_a_stretch_is_cut_with_it),
		cmocka_unit_test(test_work_is_cut_as_well),
		cmocka_unit_test(test_one_border_is_enough),
		cmocka_unit_test(test_what_has_no_length_is_whole),
		cmocka_unit_test(test_threads_that_were_blocked_before_or_to_the_end_are_cut),
		cmocka_unit_test(test_nothing_begins_before_the_run),
	};

	process = new_process(100, "one");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
