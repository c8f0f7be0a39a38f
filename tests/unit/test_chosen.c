// SPDX-License-Identifier: MIT
/* What record --failed, --min-duration and --max-events pass on. */
#include "support.h"

#include "trace/filter.h"

static struct {
	struct consumer consumer;
	int begins, ends, flushes, calls, activities, others;
	uint64_t begin_ns, activity_ns; /* of the run; that an activity has */
} next;

static int begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	next.begins++;
	next.begin_ns = run->begin_ns;
	return 0;
}

static int event(struct consumer *self, const struct event *event, struct err *err)
{
	next.calls += event->type == EVENT_CALL;
	next.activities += event->type == EVENT_ACTIVITY;
	if (event->type == EVENT_ACTIVITY)
		next.activity_ns = activity_duration_ns(event->activity);
	next.others += event->type != EVENT_CALL && event->type != EVENT_ACTIVITY;
	return 0;
}

static int flush(struct consumer *self, struct err *err)
{
	next.flushes++;
	return 0;
}

static int end(struct consumer *self, const struct run_info *run, struct err *err)
{
	next.ends++;
	next.begin_ns = run->begin_ns;
	return 0;
}

static const struct consumer_ops ops = { begin, event, flush, end, NULL };
static struct consumer *chosen;

static void choose(struct chosen_options options)
{
	memset(&next, 0, sizeof(next));
	next.consumer.ops = &ops;
	chosen = chosen_new(&next.consumer, &options);
}

static void pass(struct event event)
{
	assert_int_equal(chosen->ops->event(chosen, &event, NULL), 0);
}

static void pass_call(double duration_us, unsigned flags)
{
	struct call call = call_at("cudaMalloc", 10, duration_us);

	call.flags |= flags;
	pass((struct event){ .type = EVENT_CALL, .call = &call });
}

static void pass_activity(uint64_t ns)
{
	const struct activity activity = { .begin_ns = 1000, .end_ns = 1000 + ns };

	pass((struct event){ .type = EVENT_ACTIVITY, .activity = &activity });
}

static void test_without_a_choice_everything_passes(void **state)
{
	choose((struct chosen_options){ 0 });
	assert_int_equal(chosen->ops->begin(chosen, &(struct run_info){ 0 }, NULL), 0);
	pass_call(1, 0);
	pass_call(1, CALL_FAILED);
	pass_activity(5);
	pass((struct event){ .type = EVENT_PROCESS });
	assert_int_equal(chosen->ops->flush(chosen, NULL), 0);
	assert_int_equal(chosen->ops->end(chosen, &(struct run_info){ 0 }, NULL), 0);
	assert_int_equal(next.calls, 2);
	assert_int_equal(next.activities, 1);
	assert_int_equal(next.others, 1);
	assert_int_equal(next.begins + next.flushes + next.ends, 3);
	assert_false(chosen_enough(chosen));
	chosen->ops->free(chosen);
}

static void test_failed_calls_alone(void **state)
{
	choose((struct chosen_options){ .failed = true });
	pass_call(1, 0);
	pass_call(1, CALL_FAILED);
	pass_activity(5);
	pass((struct event){ .type = EVENT_EXIT });
	assert_int_equal(next.calls, 1);
	assert_int_equal(next.activities, 0);
	assert_int_equal(next.others, 1);
	chosen->ops->free(chosen);
}

static void test_what_took_long(void **state)
{
	choose((struct chosen_options){ .min_duration_ns = 5000 });
	pass_call(4.9, 0);
	pass_call(5, 0);
	pass_call(100, CALL_UNFINISHED); /* how long is not known */
	pass_activity(4999);
	pass_activity(5000);
	assert_int_equal(next.calls, 1);
	assert_int_equal(next.activities, 1);
	chosen->ops->free(chosen);
}

/* A nested call comes before the one around it, and is part of that. */
static void test_enough_is_counted_in_calls_that_are_not_nested(void **state)
{
	choose((struct chosen_options){ .max_calls = 2 });
	pass_call(1, CALL_NESTED);
	pass_call(1, 0);
	assert_false(chosen_enough(chosen));
	pass_call(1, CALL_NESTED);
	pass_call(1, 0);
	assert_true(chosen_enough(chosen));
	pass_call(1, 0);
	assert_int_equal(next.calls, 4);
	chosen->ops->free(chosen);
}

static void pass_work(double begin_us, double duration_us)
{
	struct activity activity = { .begin_ns = US(begin_us),
		                     .end_ns = US(begin_us + duration_us) };

	pass((struct event){
		.type = EVENT_ACTIVITY, .time_ns = activity.end_ns, .activity = &activity });
}

static void pass_call_at(double begin_us)
{
	struct call call = call_at("cudaMalloc", begin_us, 10);

	pass((struct event){ .type = EVENT_CALL, .time_ns = call.end_ns, .call = &call });
}

/* The run begins then. What lies across the moment is cut, where times are added up. */
static void test_what_ended_before_the_moment_is_left_out(void **state)
{
	struct run_info run = { .begin_ns = US(0) };

	choose((struct chosen_options){ .from_ns = US(100) });
	assert_int_equal(chosen->ops->begin(chosen, &run, NULL), 0);
	assert_int_equal(next.begin_ns, US(100));
	pass((struct event){ .type = EVENT_PROCESS, .time_ns = US(1), .process = the_process() });
	pass((struct event){ .type = EVENT_EXIT, .time_ns = US(2), .process = the_process() });
	assert_int_equal(next.others, 2);
	pass_call_at(20);
	pass_call_at(90); /* ends at it */
	assert_int_equal(next.calls, 0);
	pass_call_at(95);
	pass_call_at(200);
	assert_int_equal(next.calls, 2);
	pass_work(10, 50);
	assert_int_equal(next.activities, 0);
	pass_work(80, 50);
	assert_int_equal(next.activities, 1);
	assert_int_equal(next.activity_ns, 30000);
	run.end_ns = US(500);
	assert_int_equal(chosen->ops->end(chosen, &run, NULL), 0);
	assert_int_equal(next.begin_ns, US(100));
	chosen->ops->free(chosen);
}

static void test_a_run_that_ends_before_it_begins_has_no_length(void **state)
{
	struct run_info run = { .begin_ns = US(0), .end_ns = US(40) };

	choose((struct chosen_options){ .from_ns = US(100) });
	assert_int_equal(chosen->ops->end(chosen, &run, NULL), 0);
	assert_int_equal(next.begin_ns, US(40));
	chosen->ops->free(chosen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_choice_everything_passes),
		cmocka_unit_test(test_failed_calls_alone),
		cmocka_unit_test(test_what_took_long),
		cmocka_unit_test(test_enough_is_counted_in_calls_that_are_not_nested),
		cmocka_unit_test(test_what_ended_before_the_moment_is_left_out),
		cmocka_unit_test(test_a_run_that_ends_before_it_begins_has_no_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
