// SPDX-License-Identifier: MIT
/* What record --failed, --min-duration and --max-events pass on. */
#include "support.h"

#include "trace/filter.h"

static struct {
	struct consumer consumer;
	int begins, ends, flushes, calls, activities, others;
} next;

static int begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	next.begins++;
	return 0;
}

static int event(struct consumer *self, const struct event *event, struct err *err)
{
	next.calls += event->type == EVENT_CALL;
	next.activities += event->type == EVENT_ACTIVITY;
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
	assert_int_equal(chosen->ops->begin(chosen, NULL, NULL), 0);
	pass_call(1, 0);
	pass_call(1, CALL_FAILED);
	pass_activity(5);
	pass((struct event){ .type = EVENT_PROCESS });
	assert_int_equal(chosen->ops->flush(chosen, NULL), 0);
	assert_int_equal(chosen->ops->end(chosen, NULL, NULL), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_choice_everything_passes),
		cmocka_unit_test(test_failed_calls_alone),
		cmocka_unit_test(test_what_took_long),
		cmocka_unit_test(test_enough_is_counted_in_calls_that_are_not_nested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
