// SPDX-License-Identifier: MIT
/* What cuscope asks of the recording inside a process: memory for code, slots, turning them. */
#include "orders_scene.h"

/* ---- without CUPTI ---- */

static void test_without_kinds_nothing_of_cupti_is_touched(void **state)
{
	size_t threads, fds;
	struct host *host;

	end(begin()); /* what is made once is there: sanitizers have a thread of their own */
	host_sleep(50);
	threads = count_threads();
	fds = count_fds();
	host = begin();

	assert_int_equal(host->shared->failure, AGENT_FINE);
	assert_string_equal(host->shared->cupti_path, "");
	assert_int_equal(count_mappings("cupti"), 0);
	assert_int_equal(host->shared->probe_clock, AGENT_CLOCK_TICKS);
	host_tell(host, AGENT_PAUSE); /* is of CUPTI */
	host_tell(host, AGENT_RUN);
	host_sleep(150);
	assert_int_equal(host->shared->state, AGENT_RUNNING);
	end(host);
	for (int i = 0; i < 2000 && count_threads() > threads; i++)
		host_sleep(1);
	assert_int_equal(count_threads(), threads);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_mappings("memfd:ring"), 0);
}

static void test_hello_has_to_ask_for_something(void **state)
{
	struct host *host = host_new(KIB(64));

	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_hello(host, 0);
	assert_int_equal(host_wait(host, AGENT_FAILED), AGENT_FAILED);
	assert_int_equal(host->shared->failure, AGENT_BAD_HELLO);
	host_free(host);
}

/* ---- memory for code ---- */

static bool is_readable_and_executable(uint64_t at)
{
	FILE *file = fopen("/proc/self/maps", "r");
	unsigned long long from, to;
	char line[4096], protection[5];
	bool found = false;

	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%llx-%llx %4s", &from, &to, protection) == 3 && from <= at &&
		        at < to && !strcmp(protection, "r-xp");
	fclose(file);
	return found;
}

static bool is_zero(uint64_t at, size_t bytes)
{
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char code[PAGE];
	bool zero = pread(memory, code, bytes, (off_t)at) == (ssize_t)bytes;

	for (size_t i = 0; i < bytes; i++)
		zero &= !code[i];
	close(memory);
	return zero;
}

static void test_memory_for_code_is_near_and_not_writable(void **state)
{
	struct host *host = begin();
	uint64_t near = (uint64_t)nothing, at, next;
	int64_t away;

	assert_int_equal(ask_area(host, near, 100), 0);
	at = host->shared->answer.area;
	away = (int64_t)(at - near);
	assert_true(away < (int64_t)AGENT_REACH && away > -(int64_t)AGENT_REACH);
	assert_int_equal(at % PAGE, 0);
	assert_true(is_readable_and_executable(at));
	assert_true(is_zero(at, PAGE));
	assert_int_equal(ask_area(host, near, 2 * PAGE), 0);
	next = host->shared->answer.area;
	assert_true(next >= at + PAGE || next + 2 * PAGE <= at);
	end(host);
	host = begin(); /* what was given out once is not again */
	assert_int_equal(ask_area(host, near, PAGE), 0);
	assert_true(host->shared->answer.area != at && host->shared->answer.area != next);
	end(host);
}

static void test_memory_for_code_has_limits(void **state)
{
	struct host *host = begin();

	assert_int_equal(ask_area(host, (uint64_t)nothing, 0), -EINVAL);
	assert_int_equal(ask_area(host, (uint64_t)nothing, UINT32_MAX), -EINVAL);
	assert_int_equal(ask_area(host, (uint64_t)nothing, AGENT_AREA_MOST), -ENOBUFS);
	assert_int_equal(host->shared->answer.area, 0);
#ifndef __SANITIZE_THREAD__ /* which has its own idea of where something may be */
	assert_int_equal(ask_area(host, UINT64_MAX, PAGE), -ENOSPC);
#endif
	end(host);
}

/* As there are places where nothing is to be put: where the heap and the first stack will grow. */
static void test_memory_for_code_is_in_nobodys_way(void **state)
{
	struct host *host = begin();
	uint64_t heap = (uint64_t)sbrk(0), stack = (uint64_t)&host, at;

	assert_int_equal(ask_area(host, heap + (64 << 20), PAGE), 0);
	at = host->shared->answer.area;
	assert_true(at + PAGE <= heap || at > heap + (512 << 20));
	assert_int_equal(ask_area(host, stack - (16 << 20), PAGE), 0);
	at = host->shared->answer.area;
	assert_true(at < stack - (512 << 20) || at > stack);
	end(host);
}

/* ---- slots ---- */

static void test_a_slot_records_and_passes_on(void **state)
{
	struct host *host = begin();
	function thunk = divert(host, 3, twice, AGENT_SLOT_PASSES_ON);

	assert_int_equal(thunk(4), 8);
	assert_int_equal(calls_told(host), 0);
	assert_int_equal(ask_turn(host, 3, 1, AGENT_SLOT_CALL), 0);
	assert_int_equal(thunk(5), 10);
	assert_int_equal(calls_told(host), 1);
	assert_int_equal(slot_of(host, call_at(host, 0)), 3);
	assert_int_equal(call_at(host, 0)->result, 10);
	assert_int_equal((int)call_at(host, 0)->word[WIRE_AT_REG], 5);
	assert_int_equal(ask_turn(host, 3, 1, AGENT_SLOT_ENTRY), 0);
	assert_int_equal(thunk(6), 12);
	assert_int_equal(calls_told(host), 2);
	assert_int_equal(call_at(host, 1)->head.flags, WIRE_NO_RETURN);
	assert_int_equal(ask_turn(host, 3, 1, AGENT_SLOT_PASSES_ON), 0);
	assert_int_equal(thunk(7), 14);
	assert_int_equal(calls_told(host), 2);
	end(host);
	assert_int_equal(thunk(8), 16); /* for as long as the process lives */
}

static void test_slots_that_make_no_sense_are_refused(void **state)
{
	struct host *host = begin();
	uint64_t code = area_of(host, 1, nothing);
	const struct agent_slot good = { .slot = fresh(host, 5),
		                         .cookie = plain(),
		                         .original = code };
	struct agent_slot slot, some[130];

#define REFUSED(field, value)                                                                      \
	(slot = good, slot.field = (value), assert_int_equal(set_one(host, slot), -EINVAL))
	REFUSED(slot, host->shared->probe_slots);
	REFUSED(slot, UINT32_MAX);
	REFUSED(original, 0);
	REFUSED(original, (uint64_t)nothing); /* in no area */
	REFUSED(original, code + PAGE);       /* not given out */
	REFUSED(does, AGENT_SLOT_DOES);
	REFUSED(stack_words, AGENT_STACK_WORDS_MOST + 1);
	assert_int_equal(ask_set(host, &good, 2, sizeof(good)), -EINVAL); /* it holds one */
	assert_int_equal(ask_set(host, &good, 0, sizeof(good)), -EINVAL);
	assert_int_equal(ask_set(host, &good, UINT32_MAX, sizeof(good)), -EINVAL);
	assert_int_equal(host_ask(host,
	                          (struct agent_message){ .type = AGENT_PROBES_SET, .slots.n = 1 },
	                          -1),
	                 -EINVAL);
	for (uint32_t i = 0; i < 130; i++) {
		some[i] = good;
		some[i].slot = fresh(host, i);
	}
	some[129].original = 1;
	assert_int_equal(ask_set(host, some, 130, sizeof(some)), -EINVAL); /* and none is set: */
	some[129].original = code;
	assert_int_equal(ask_set(host, some, 130, sizeof(some)), 0);
	assert_int_equal(set_one(host, good), -EEXIST);
	assert_int_equal(ask_turn(host, 0, 131, AGENT_SLOT_CALL),
	                 -EINVAL); /* the last is not set */
	assert_int_equal(ask_turn(host, 0, 0, AGENT_SLOT_CALL), -EINVAL);
	assert_int_equal(ask_turn(host, UINT32_MAX, 2, AGENT_SLOT_CALL), -EINVAL);
	assert_int_equal(ask_turn(host, 2, UINT32_MAX, AGENT_SLOT_CALL), -EINVAL);
	assert_int_equal(ask_turn(host, 0, 130, AGENT_SLOT_DOES), -EINVAL);
	end(host);
}

static void test_slots_of_the_next_session_are_others(void **state)
{
	struct host *host = begin();
	uint32_t used = host->shared->probe_used;
	function thunk = divert(host, 0, twice, AGENT_SLOT_CALL), next;

	divert(host, 9, twice, AGENT_SLOT_CALL);
	assert_int_equal(thunk(1), 2);
	assert_int_equal(calls_told(host), 1);
	end(host);
	host = begin();
	assert_int_equal(host->shared->probe_slots, AGENT_SLOTS_MOST);
	assert_int_equal(host->shared->probe_used, used + 10);
	assert_int_equal(thunk_of(host, 0), (uint64_t)thunk + 10ull * 16);
	assert_int_equal(thunk(2), 4);
	assert_int_equal(calls_told(host), 0);
	assert_int_equal(ask_turn(host, (uint32_t)-10, 1, AGENT_SLOT_CALL), -EINVAL);
	next = divert(host, 0, nothing, AGENT_SLOT_CALL);
	assert_int_equal(next(3), 3);
	assert_int_equal(thunk(4), 8);
	assert_int_equal(calls_told(host), 1);
	assert_int_equal(slot_of(host, call_at(host, 0)), 0);
	assert_int_equal(call_at(host, 0)->result, 3);
	end(host);
}

static const struct agent_area *told_area(const struct host *host, uint64_t address)
{
	for (uint32_t i = 0; i < host->shared->probe_areas; i++) {
		if (host->shared->probe_area[i].address == address)
			return &host->shared->probe_area[i];
	}
	return NULL;
}

static uint64_t with_words(uint64_t words)
{
	return (plain() & ~cookie_with_words(~0ull)) | cookie_with_words(words);
}

/* As cuscope goes on and off: all that it used the first time is there, and nothing else is needed.
 */
static void test_sessions_in_a_row_use_no_new_slots(void **state)
{
	enum { SLOTS = 100, SESSIONS = 30 };
	struct agent_slot slots[SLOTS];
	struct host *host = begin();
	uint32_t first = fresh(host, 0);
	uint64_t code = area_of(host, SLOTS, twice), thunks = thunk_of(host, 0);

	for (uint32_t i = 0; i < SLOTS; i++)
		slots[i] = (struct agent_slot){ .slot = first + i,
			                        .cookie = plain(),
			                        .original = code + (uint64_t)i * CODE,
			                        .does = AGENT_SLOT_CALL };
	for (int session = 0; session < SESSIONS; session++) {
		slots[7].cookie = with_words(WIRE_AT_STACK - session % 3);
		assert_int_equal(ask_set(host, slots, SLOTS, sizeof(slots)), 0);
		assert_int_equal(ask_set(host, slots, SLOTS, sizeof(slots)), -EEXIST);
		assert_int_equal(((function)(thunks + 7ull * 16))(session), 2 * session);
		assert_int_equal(calls_told(host), 1);
		assert_int_equal(call_at(host, 0)->head.lane, first + 7);
		assert_int_equal(call_at(host, 0)->head.bytes,
		                 sizeof(struct agent_probed) + 8 * (WIRE_AT_STACK - session % 3));
		end(host);
		assert_int_equal(((function)(thunks + 7ull * 16))(5), 10);
		host = begin();
		assert_int_equal(host->shared->probe_used, first + SLOTS);
		assert_non_null(told_area(host, code));
		assert_int_equal(told_area(host, code)->bytes, PAGE);
		assert_int_equal(told_area(host, code)->first, first);
		assert_int_equal(told_area(host, code)->n, SLOTS);
		assert_int_equal(((function)(thunks + 7ull * 16))(5), 10);
		assert_int_equal(calls_told(host), 0);
	}
	end(host);
}

static void test_a_slot_leads_to_the_same_code_for_good(void **state)
{
	struct host *host = begin();
	uint32_t slot = fresh(host, 0);
	uint64_t code = area_of(host, 2, twice);
	const struct agent_slot good = { .slot = slot, .cookie = plain(), .original = code };
	struct agent_slot other = good;

	assert_int_equal(set_one(host, good), 0);
	end(host);
	host = begin();
	other.original = code + CODE;
	assert_int_equal(set_one(host, other), -EEXIST);
	assert_int_equal(((function)(host->shared->probe_thunks + slot * 16ull))(5), 10);
	assert_int_equal(set_one(host, good), 0);
	end(host);
}

static void test_begins_are_told_apart(void **state)
{
	struct host *host = begin_with(KIB(256), 0, AGENT_PROBES_BEGINS);
	function thunk = divert(host, 0, twice, AGENT_SLOT_CALL);
	uint64_t before = host_now();

	assert_int_equal(host->shared->probe_clock, AGENT_CLOCK_NS);
	assert_int_equal(thunk(1), 2);
	assert_int_equal(calls_told(host), 1);
	assert_int_equal(host_count(host, AGENT_PROBE_BEGUN), 1);
	assert_in_range(call_at(host, 0)->begin, before, host_now());
	end(host);
}

/* Of a slot alone, where its calls may lead to functions that keep their probes. */
static void test_begins_of_one_slot_are_told(void **state)
{
	struct host *host = begin();
	uint64_t code = area_of(host, 2, twice);
	uint32_t first = fresh(host, 0);
	const struct agent_slot slots[] = {
		{ .slot = first,
		  .cookie = plain(),
		  .original = code,
		  .does = AGENT_SLOT_CALL,
		  .begins = 1 },
		{ .slot = first + 1,
		  .cookie = plain(),
		  .original = code + CODE,
		  .does = AGENT_SLOT_CALL },
	};

	assert_int_equal(ask_set(host, slots, 2, sizeof(slots)), 0);
	assert_int_equal(((function)thunk_of(host, 0))(1), 2);
	assert_int_equal(((function)thunk_of(host, 1))(2), 4);
	assert_int_equal(calls_told(host), 2);
	assert_int_equal(host_count(host, AGENT_PROBE_BEGUN), 1);
	assert_int_equal(call_at(host, 0)->head.flags, WIRE_BEGUN);
	assert_int_equal(call_at(host, 1)->head.flags, 0);
	end(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_kinds_nothing_of_cupti_is_touched),
		cmocka_unit_test(test_hello_has_to_ask_for_something),
		cmocka_unit_test(test_memory_for_code_is_near_and_not_writable),
		cmocka_unit_test(test_memory_for_code_has_limits),
		cmocka_unit_test(test_memory_for_code_is_in_nobodys_way),
		cmocka_unit_test(test_a_slot_records_and_passes_on),
		cmocka_unit_test(test_slots_that_make_no_sense_are_refused),
		cmocka_unit_test(test_slots_of_the_next_session_are_others),
		cmocka_unit_test(test_sessions_in_a_row_use_no_new_slots),
		cmocka_unit_test(test_a_slot_leads_to_the_same_code_for_good),
		cmocka_unit_test(test_begins_are_told_apart),
		cmocka_unit_test(test_begins_of_one_slot_are_told),
	};

	return cmocka_run_group_tests_name("agent: orders", tests, NULL, NULL);
}
