// SPDX-License-Identifier: MIT
/* What agents record inside of processes, made into the programs' records; and what they may not
 * say. */
#include "unit.h"

#include "agent/agent_probes.h"
#include "base/array.h"

#define PID   42
#define SINCE 1000
#define NOW   9000

#define SLOTS 3

static uint64_t cookies[SLOTS + 1]; /* of 10 words; not handed out; of none; beyond them */
static struct probe_records *records;
static size_t told;
static union {
	struct wire_head head;
	struct wire_call call;
	struct wire_name name;
} last;

static union record {
	struct agent_head head;
	struct agent_probed call;
	struct agent_probe_name name;
	_Alignas(8) char bytes[AGENT_RECORD_MAX];
} record;

static uint32_t thread_of(void *data, uint32_t tid)
{
	return tid == 7 ? 1007 : 0;
}

static void take(void *data, const struct wire_head *head, size_t bytes)
{
	told++;
	memset(&last, 0xee, sizeof(last));
	memcpy(&last, head, bytes);
}

static int begin(void **state)
{
	const struct probe_records_options options = { .pid = PID,
		                                       .cookies = cookies,
		                                       .n_cookies = SLOTS,
		                                       .since_ns = SINCE,
		                                       .thread = thread_of,
		                                       .record = take };

	cookies[0] = cookie_with_hook(300) | cookie_with_words(10);
	cookies[1] = PROBE_NO_COOKIE;
	cookies[2] = cookie_with_hook(301);
	cookies[3] = cookies[0];
	records = probe_records_new(&options);
	told = 0;
	return 0;
}

static int end(void **state)
{
	probe_records_free(records);
	return 0;
}

/* A good one, to be changed. */
static struct agent_probed *a_call(void)
{
	memset(&record, 0, sizeof(record));
	record.call = (struct agent_probed){
		.head = { .bytes = sizeof(record.call) + 80, .type = AGENT_PROBED },
		.begin = 2000,
		.end = 3000,
		.tid = 7,
		.result = 5,
		.depth = 1,
		.place = 0x7ffc0108,
	};
	for (uint64_t i = 0; i < 10; i++)
		record.call.word[i] = i + 100;
	return &record.call;
}

static struct agent_probe_name *a_name(const char *text)
{
	memset(&record, 0, sizeof(record));
	record.name = (struct agent_probe_name){
		.head = { .type = AGENT_PROBE_NAME },
		.begin = 2000,
		.key = 0x1234,
		.from = 0x5678,
		.tid = 7,
		.source = NAME_OF_CALL,
	};
	strcpy(record.name.text, text);
	record.head.bytes = (uint32_t)(sizeof(record.name) + strlen(text) + 8) & ~7u;
	return &record.name;
}

static enum probe_record_is taken(void)
{
	return probe_records_take(records, &record.head, NOW);
}

static void test_a_call_that_is_walked_has_the_number_of_its_walk(void **state)
{
	struct agent_probed *call = a_call();

	call->head.flags = WIRE_WALKED;
	call->depth = 0x1234;
	assert_int_equal(taken(), PROBE_RECORD_TAKEN);
	assert_int_equal(last.head.depth, 0);
	assert_int_equal(last.head.flags, WIRE_WALKED);
	assert_int_equal(last.head.walk, 0x1234);
	call->depth = 0xffff;
	assert_int_equal(taken(), PROBE_RECORD_TAKEN);
	call->depth = 0x10000;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	call->depth = 0;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	call->head.flags = 0;
	call->depth = 63;
	assert_int_equal(taken(), PROBE_RECORD_TAKEN);
	assert_int_equal(last.head.walk, 0);
	call->depth = 64;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
}

static void test_a_call_becomes_that_of_its_hook(void **state)
{
	a_call()->head.flags = WIRE_UNREADABLE;
	assert_int_equal(taken(), PROBE_RECORD_TAKEN);
	assert_int_equal(last.head.type, WIRE_CALL);
	assert_int_equal(last.head.hook, 300);
	assert_int_equal(last.head.tgid, PID);
	assert_int_equal(last.head.tid, 1007);
	assert_int_equal(last.head.time_ns, 3000);
	assert_int_equal(last.head.depth, 1);
	assert_int_equal(last.head.flags, WIRE_NESTED | WIRE_UNREADABLE);
	assert_int_equal(last.head.words, 10);
	assert_int_equal(last.call.begin_ns, 2000);
	assert_int_equal(last.call.result, 5);
	assert_int_equal(last.call.place, 0x7ffc0108);
	assert_int_equal(last.call.word[9], 109);
	assert_int_equal(last.call.word[10], 0xeeeeeeeeeeeeeeee);
}

static void test_an_entry_has_no_end_and_no_result(void **state)
{
	a_call()->head.type = AGENT_PROBE_BEGUN;
	assert_int_equal(taken(), PROBE_RECORD_TAKEN);
	assert_int_equal(last.head.type, WIRE_BEGIN);
	assert_int_equal(last.head.time_ns, 2000);
	assert_int_equal(last.call.result, 0);
	a_call()->head.type = AGENT_PROBE_BEGUN;
	record.head.flags = WIRE_UNFINISHED;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
}

static void test_what_is_not_the_slots_is_refused(void **state)
{
	a_call()->head.lane = 1;
	assert_int_equal(taken(), PROBE_RECORD_BAD); /* not handed out */
	a_call()->head.lane = 3;
	assert_int_equal(taken(), PROBE_RECORD_BAD); /* beyond all */
	a_call()->head.lane = 2;
	assert_int_equal(taken(), PROBE_RECORD_BAD); /* of fewer words */
	a_call()->head.bytes -= 8;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	a_call()->head.bytes += 8;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	a_call()->head.bytes = 8;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	a_call()->depth = AGENT_PROBE_DEPTH_MAX;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	cookies[0] = cookie_with_words(63); /* more than there can be */
	a_call()->head.bytes = sizeof(record.call) + 63 * 8;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	assert_int_equal(told, 0);
}

static void test_flags_that_only_programs_or_cuscope_set_are_refused(void **state)
{
	static const uint8_t flags[] = { WIRE_FOLDED, WIRE_BY_AGENT,
		                         WIRE_NO_RETURN | WIRE_UNFINISHED };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		a_call()->head.flags = flags[i];
		assert_int_equal(taken(), PROBE_RECORD_BAD);
	}
	a_call()->head.flags = WIRE_NESTED; /* that is told by the depth */
	record.call.depth = 0;
	assert_int_equal(taken(), PROBE_RECORD_TAKEN);
	assert_int_equal(last.head.flags, 0);
}

static void test_impossible_times_are_refused(void **state)
{
	a_call()->end = 1999;
	assert_int_equal(taken(), PROBE_RECORD_BAD_TIMES);
	a_call()->begin = SINCE - 1;
	assert_int_equal(taken(), PROBE_RECORD_BAD_TIMES);
	a_call()->end = NOW + 1;
	assert_int_equal(taken(), PROBE_RECORD_BAD_TIMES);
	a_call()->end = UINT64_MAX;
	assert_int_equal(taken(), PROBE_RECORD_BAD_TIMES);
	a_name("x")->begin = NOW + 1;
	assert_int_equal(taken(), PROBE_RECORD_BAD_TIMES);
	assert_int_equal(told, 0);
}

static void test_threads_of_others_are_refused(void **state)
{
	a_call()->tid = 8;
	assert_int_equal(taken(), PROBE_RECORD_NO_THREAD);
	a_name("x")->tid = 8;
	assert_int_equal(taken(), PROBE_RECORD_NO_THREAD);
	assert_int_equal(told, 0);
}

static void test_texts(void **state)
{
	a_name("_Z4axpyv")->head.flags = WIRE_TRUNCATED | WIRE_BY_AGENT;
	assert_int_equal(taken(), PROBE_RECORD_TAKEN);
	assert_int_equal(last.head.type, WIRE_NAME);
	assert_int_equal(last.head.hook, 300);
	assert_int_equal(last.head.flags, WIRE_TRUNCATED);
	assert_int_equal(last.head.bytes, 9);
	assert_int_equal(last.name.key, 0x1234);
	assert_string_equal(last.name.text, "_Z4axpyv");
	a_name("");
	assert_int_equal(taken(), PROBE_RECORD_TAKEN); /* cuscope looks itself, then */
	assert_int_equal(last.head.bytes, 0);
	assert_int_equal(last.name.from, 0x5678);
}

static void test_texts_that_are_none(void **state)
{
	a_name("x")->source = 4;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	a_name("x")->source = 0;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	a_name("x")->head.bytes = sizeof(record.name);
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	a_name("1234567");
	record.name.text[7] = 'x'; /* no end in the record */
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	a_name("x");
	memset(record.name.text, 'x', WIRE_STRING_MAX); /* too long */
	record.head.bytes = AGENT_RECORD_MAX;
	assert_int_equal(taken(), PROBE_RECORD_BAD);
	assert_int_equal(told, 0);
}

static void test_times_in_ticks(void **state)
{
	struct tick_clock *ticks = tick_clock_new();
	const struct probe_records_options options = { .pid = PID,
		                                       .cookies = cookies,
		                                       .n_cookies = SLOTS,
		                                       .ticks = ticks,
		                                       .thread = thread_of,
		                                       .record = take };

	probe_records_free(records);
	records = probe_records_new(&options);
	a_call()->begin = tick_clock_ticks();
	record.call.end = tick_clock_ticks();
	assert_int_equal(taken(), PROBE_RECORD_TAKEN);
	assert_true(last.call.begin_ns <= last.head.time_ns);
	a_call()->begin = tick_clock_ticks();
	record.call.end = tick_clock_ticks() + 1000000000000; /* minutes ahead */
	assert_int_equal(taken(), PROBE_RECORD_BAD_TIMES);
	record.call.begin = 1; /* before cuscope */
	record.call.end = 2;
	assert_int_equal(taken(), PROBE_RECORD_BAD_TIMES);
	tick_clock_free(ticks);
}

static void test_other_records_are_others(void **state)
{
	a_call()->head.type = AGENT_KERNEL;
	assert_int_equal(taken(), PROBE_RECORD_OTHER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_a_call_becomes_that_of_its_hook),
		TEST(test_a_call_that_is_walked_has_the_number_of_its_walk),
		TEST(test_an_entry_has_no_end_and_no_result),
		TEST(test_what_is_not_the_slots_is_refused),
		TEST(test_flags_that_only_programs_or_cuscope_set_are_refused),
		TEST(test_impossible_times_are_refused),
		TEST(test_threads_of_others_are_refused),
		TEST(test_texts),
		TEST(test_texts_that_are_none),
		TEST(test_times_in_ticks),
		TEST(test_other_records_are_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
