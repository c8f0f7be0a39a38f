// SPDX-License-Identifier: MIT
/* Which calls of a process are its agent's, and which the probes', from its coming to its end. */
#include "inside_steps.h"

#include <time.h>

#include "bpf/wire_fold.h"
#include "capture/inside/inside_private.h"

/* ---- becoming the agent's ------------------------------------------------------------------ */

static void test_a_process_is_diverted_step_by_step(void **state)
{
	struct inside *inside = open_inside(0);

	agent_comes(inside, 100);
	assert_int_equal(fake.near, TEXT + 0x1000);
	assert_int_equal(fake.bytes, 4096);
	answer(0, AREA);
	assert_int_equal(fake.n_slots, 3);
	assert_int_equal(fake.slots[1].original, AREA + 64);
	assert_int_equal(cookie_hook(fake.slots[1].cookie), hooks[1].id);
	assert_int_equal(fake.slots[1].does, AGENT_SLOT_CALL);
	assert_false(changes.puts);
	answer(0, 0);
	assert_true(changes.puts);
	assert_int_equal(changes.area, AREA);
	assert_int_equal(changes.thunks[1], THUNKS + 16);
	assert_int_equal(changes.thunks[REFUSED], 0);
	assert_int_equal(flagged, INSIDE_ANY);
	diverted(0, START + MS(10));
	assert_int_equal(flagged, INSIDE_ANY | 2);
	assert_non_null(strstr(notices, "3 functions of libcuda.so.1 are recorded inside"));
	assert_non_null(strstr(notices, "1 of 4 functions of libcuda.so.1 keep their probes"));
	inside_free(inside);
}

/* Earlier sessions left three areas; that of other code is not used, and the one that is too small
 * is not even tried. */
static void test_nobody_waits_until_a_file_was_looked_at(void **state)
{
	struct inside *inside;

	look_for = 3;
	inside = open_inside(0);
	agent_comes(inside, 100);
	assert_int_equal(fake.bytes, 0);
	inside_turn(inside, START + MS(1)); /* not due yet */
	for (uint64_t ms = 3; ms < 9; ms += 3) {
		assert_int_equal(fake.bytes, 0);
		inside_turn(inside, START + MS(ms));
	}
	inside_turn(inside, START + MS(9));
	assert_int_equal(fake.bytes, 4096);
	answer(0, AREA);
	answer(0, 0);
	assert_true(changes.puts);
	assert_int_equal(changes.thunks[REFUSED], 0);
	inside_free(inside);
}

static void test_areas_of_earlier_sessions_come_first(void **state)
{
	const struct agent_area areas[] = { { AREA, 4096, 0, 2, 0 },
		                            { AREA + 4096, 4096, 2, 3, 0 },
		                            { AREA + 8192, 4096, 5, 3, 0 } };
	struct inside *inside = open_inside(0);

	news((struct agent_probes_answer){ .news = AGENT_PROBES_READY,
	                                   .slots = 100,
	                                   .used = 8,
	                                   .areas = areas,
	                                   .n_areas = 3,
	                                   .thunks = THUNKS,
	                                   .thunk_bytes = 16 });
	inside_turn(inside, START + MS(1));
	assert_int_equal(fake.bytes, 0); /* no new one */
	assert_int_equal(fake.slots[0].slot, 2);
	assert_int_equal(fake.slots[0].original, AREA + 4096 + 0);
	answer(-EEXIST, 0); /* these lead elsewhere */
	assert_int_equal(fake.slots[0].slot, 5);
	answer(0, 0);
	assert_int_equal(changes.area, AREA + 8192);
	assert_int_equal(changes.thunks[1], THUNKS + 6 * 16);
	diverted(-EEXIST, 0);
	assert_int_equal(fake.bytes, 4096);
	answer(0, AREA + 65536);
	assert_int_equal(fake.slots[0].slot, 8);
	answer(0, 0);
	assert_int_equal(changes.area, AREA + 65536);
	diverted(0, START + MS(10));
	assert_int_equal(flagged, INSIDE_ANY | 2);
	inside_free(inside);
}

static void test_why_probes_were_kept_to_the_end_is_told(void **state)
{
	struct inside *inside = open_inside(0);
	struct wire_call call = { .head = { .type = WIRE_CALL, .tgid = PROCESS } };

	named = "cuMemcpy";
	make_hooks();
	call.head.hook = hooks[1].id;
	hooks[1].api = api_find("cuMemcpy");
	inside_called(inside, &call);
	inside_stop(inside);
	assert_non_null(strstr(notices, "has kept its probes: its agent had not answered yet when "
	                                "the trace ended"));
	inside_free(inside);
	named = NULL;

	inside = open_inside(0);
	look_for = 100;
	agent_comes(inside, 100);
	inside_stop(inside);
	look_for = 0;
	assert_non_null(strstr(notices, "has kept its probes: its code was not judged yet when"));
	inside_free(inside);

	inside = open_inside(0);
	look_for = 100;
	agent_comes(inside, 100);
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	inside_stop(inside);
	look_for = 0;
	assert_non_null(strstr(notices, "has kept its probes: its agent has ended"));
	inside_free(inside);

	inside = open_inside(0);
	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	diverted(-EAGAIN, 0);
	inside_stop(inside);
	assert_non_null(strstr(notices, "in vain it was tried 1 time to record it inside, at last "
	                                "as its threads did not stop"));
	inside_stop(inside);
	assert_null(strstr(strstr(notices, "in vain") + 1, "in vain"));
	inside_free(inside);
}

static void test_calls_belong_to_who_saw_their_begin(void **state)
{
	struct inside *inside = diverted_process();

	assert_false(is_left_out(inside, 0, START + MS(10) - 1));
	assert_true(is_left_out(inside, 0, START + MS(10)));
	assert_false(is_left_out(inside, REFUSED, START + MS(11)));
	assert_true(is_left_out(inside, HOOKS - 1, START + MS(10)));
	assert_int_equal(programs_memory.inside[hooks[0].id], 1);
	assert_int_equal(programs_memory.inside[hooks[REFUSED].id], 0);
	inside_free(inside);
}

/* What it calls is sent by the programs, and left out here. */
static void test_a_module_more_than_the_programs_can_tell_apart_is_looked_at(void **state)
{
	struct inside *inside = open_inside(0);

	for (unsigned i = 1; i < INSIDE_BITS; i++)
		inside->bit_of[i] = &runtime_module;
	divert_process(inside);
	assert_int_equal(flagged, INSIDE_ANY);
	assert_int_equal(programs_memory.inside[hooks[0].id], 0);
	assert_true(is_left_out(inside, 0, START + MS(10)));
	inside_free(inside);
}

static bool twin_is_left_out(struct inside *inside, size_t twin, size_t hook, uint64_t begin_ns)
{
	struct wire_call call = { .head = { .type = WIRE_CALL,
		                            .hook = (uint16_t)(TWIN + twin * HOOKS + hook),
		                            .tgid = PROCESS,
		                            .tid = PROCESS },
		                  .begin_ns = begin_ns };

	return inside_leaves_out(inside, &call.head);
}

/* As in two containers of one image. */
static void test_calls_that_another_file_s_hook_tells_of_are_left_out_too(void **state)
{
	for (int alike = 0; alike < 2; alike++) {
		struct inside *inside = diverted_process();

		make_twins(alike ? module.alike : 3);
		assert_int_equal(twin_is_left_out(inside, 0, 0, START + MS(11)), alike);
		assert_false(twin_is_left_out(inside, 0, 0, START + MS(9)));
		assert_false(twin_is_left_out(inside, 0, REFUSED, START + MS(11)));
		inside_free(inside);
	}
}

/* As where a program and one of its libraries bring the same version each. */
static void test_calls_of_a_second_copy_that_the_process_has_mapped_are_kept(void **state)
{
	struct inside *inside = diverted_process();

	make_twins(module.alike);
	assert_true(twin_is_left_out(inside, 0, 0, START + MS(11)));
	twins[0].inode = 7; /* by __wrap_maps_each it has come */
	twins[0].dev = 5;
	inside_mapped(inside, PROCESS, START + MS(12));
	assert_false(twin_is_left_out(inside, 0, 0, START + MS(13)));
	assert_true(twin_is_left_out(inside, 1, 0, START + MS(13)));
	inside_free(inside);
}

/* However many files have the functions, and whichever is called. */
static void test_what_a_process_has_mapped_is_listed_once(void **state)
{
	struct inside *inside = diverted_process();

	make_twins(module.alike);
	maps_listed = 0;
	for (size_t i = 0; i < 3 * TWINS; i++)
		assert_true(twin_is_left_out(inside, i % TWINS, 0, START + MS(11)));
	assert_int_equal(maps_listed, 1);

	programs_memory.mode[hooks[0].id] |= HOOK_DOUBLE; /* while it is there */
	inside_mapped(inside, PROCESS, START + MS(12));
	for (size_t i = 0; i < 3; i++)
		inside_turn(inside, START + MS(13 + i));
	assert_int_equal(maps_listed, 2);
	assert_true(twin_is_left_out(inside, 0, 0, START + MS(14)));
	assert_int_equal(maps_listed, 2);
	inside_free(inside);
}

/* Where a list takes a second of a processor. */
static void test_lists_of_what_is_mapped_are_the_user_s_time(void **state)
{
	struct inside *inside;

	person = 1000;
	inside = diverted_process();
	make_twins(module.alike);
	maps_listed = 0;
	maps_take_ns = MS(1000);
	assert_true(twin_is_left_out(inside, 0, 0, START + MS(11)));
	assert_string_equal(missed, "");
	inside_mapped(inside, PROCESS, START + MS(12));
	assert_false(twin_is_left_out(inside, 0, 0, START + MS(13)));
	assert_int_equal(maps_listed, 1);
	assert_non_null(strstr(missed, "calls from 1 ms on may be told twice"));

	missed[0] = '\0';
	inside_mapped(inside, PROCESS, START + MS(14));
	assert_false(twin_is_left_out(inside, 0, 0, START + MS(15)));
	assert_string_equal(missed, "");
	maps_take_ns = 0;
	person = 0;
	inside_free(inside);
}

static void test_functions_whose_stacks_are_walked_keep_their_probes(void **state)
{
	struct inside *inside = open_inside(1u << STACK_OF_COPY);

	agent_comes(inside, 100);
	answer(0, AREA);
	assert_int_equal(fake.n_slots, 2);
	for (size_t i = 0; i < fake.n_slots; i++)
		assert_int_not_equal(cookie_hook(fake.slots[i].cookie), hooks[1].id);
	inside_free(inside);
}

/* Sums have no times: the programs go on to tell of the calls of a process that was diverted. */
static void test_calls_that_are_summed_up_are_sent_until_their_process_ends(void **state)
{
	struct inside *inside;

	folded = FOLD_TOOL_LAUNCHES;
	marked = 0;
	inside = diverted_process();
	assert_int_equal(marked, PROCESS);
	assert_true(flagged & INSIDE_ANY);
	inside_stop(inside);
	inside_turn(inside, START + MS(50));
	assert_true(changes.takes);
	assert_int_equal(flagged, INSIDE_ANY);
	inside_free(inside);
	folded = 0;
}

static bool has_slot(const struct hook *hook)
{
	for (size_t i = 0; i < fake.n_slots; i++) {
		if (cookie_hook(fake.slots[i].cookie) == hook->id)
			return true;
	}
	return false;
}

/* hooks[1], as if it were this function: whether it is recorded inside with a tool. */
static bool is_recorded(const char *symbol, unsigned tool)
{
	struct inside *inside;
	bool recorded;

	folded = tool;
	named = symbol;
	inside = open_inside(0);
	agent_comes(inside, 100);
	answer(0, AREA);
	recorded = has_slot(&hooks[1]);
	inside_free(inside);
	folded = 0;
	named = NULL;
	return recorded;
}

static void test_live_memory_is_followed_by_probes(void **state)
{
	assert_false(is_recorded("cuMemAlloc_v2", FOLD_TOOL_MEMORY));
	assert_false(is_recorded("cuMemFree_v2", FOLD_TOOL_MEMORY | FOLD_TOOL_COPIES));
	assert_false(is_recorded("cuModuleUnload", FOLD_TOOL_LAUNCHES));
	assert_true(is_recorded("cuMemFree_v2", FOLD_TOOL_COPIES));
	assert_true(is_recorded("cuMemcpyHtoD_v2", FOLD_TOOL_MEMORY | FOLD_TOOL_COPIES));
	assert_true(is_recorded("cuMemAlloc_v2", 0));
}

/* The driver's function that is refused does this, and so does the runtime's only one. */
static bool runtime_is_looked_at(const char *refused, const char *runtime, unsigned tool)
{
	struct inside *inside;
	bool looked;

	folded = tool;
	has_runtime = true;
	runtime_hook.api = api_find(runtime);
	runtime_hook.layer = LAYER_RUNTIME;
	runtime_hook.group = HOOK_CORE;
	inside = diverted_process();
	hooks[REFUSED].api = api_find(refused);
	inside_turn(inside, START + MS(20));
	looked = !strstr(notices, "libcudart.so.13 of process");
	inside_free(inside);
	folded = 0;
	has_runtime = false;
	return looked;
}

static void test_the_runtime_keeps_probes_as_the_driver_does(void **state)
{
	assert_false(runtime_is_looked_at("cuMemcpyHtoD_v2", "cudaMemcpy", FOLD_TOOL_COPIES));
	assert_true(runtime_is_looked_at("cuMemsetD8_v2", "cudaMemcpy", FOLD_TOOL_COPIES));
	assert_true(runtime_is_looked_at("cuMemcpyHtoD_v2", "cudaMemcpy", 0));
}

/* Else those that it refuses, which the agent knows by counting them; of graphs it cannot. */
static void test_launches_of_the_runtime_are_recorded_as_long_as_programs_look(void **state)
{
	for (int of_graphs = 0; of_graphs < 2; of_graphs++) {
		struct inside *inside;

		launch_kernel = of_graphs ? PLAN_NO_ARG : 0;
		inside = diverted_process();
		assert_int_equal(fake.slots[2].does,
		                 of_graphs ? AGENT_SLOT_PASSES_ON : AGENT_SLOT_COUNT);
		assert_int_equal(cookie_hook(fake.slots[2].cookie), hooks[LAUNCH].id);
		programs_memory.launches_refused = 1;
		inside_turn(inside, START + MS(20));
		assert_int_equal(fake.turned, AGENT_SLOT_CALL);
		assert_int_equal(fake.turned_first, 2);
		assert_int_equal(fake.turned_n, 1);
		programs_memory.launches_refused = 0;
		inside_turn(inside, START + MS(40));
		assert_int_equal(fake.turned, of_graphs ? AGENT_SLOT_PASSES_ON : AGENT_SLOT_COUNT);
		inside_free(inside);
	}
	launch_kernel = 0;
}

/* ---- what agents record -------------------------------------------------------------------- */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct agent_probed told_of; /* the last one, without its words */

static void record(uint16_t slot, uint64_t begin)
{
	struct {
		struct agent_probed head;
		uint64_t word[WIRE_AT_STACK];
	} told = { .head = { .head = { .bytes = sizeof(told), .type = AGENT_PROBED, .lane = slot },
		             .begin = begin,
		             .end = begin + 1,
		             .tid = PROCESS } };

	told.word[WIRE_AT_REG] = 77;
	told_of = told.head;
	fake.options.record(fake.options.data, PROCESS, &told.head.head);
}

/* Up to the order to divert, and its answer has not come. */
static struct inside *putting_process(void)
{
	struct inside *inside = open_inside(0);

	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	return inside;
}

static bool agent_s_is_left_out(struct inside *inside, size_t hook, uint64_t begin_ns)
{
	struct wire_call call = { .head = { .type = WIRE_CALL,
		                            .flags = WIRE_BY_AGENT,
		                            .hook = hooks[hook].id,
		                            .tgid = PROCESS,
		                            .tid = PROCESS,
		                            .time_ns = begin_ns + 100 },
		                  .begin_ns = begin_ns };

	return inside_leaves_out(inside, &call.head);
}

/* Threads go on before it. */
static void test_calls_are_an_agent_s_from_the_cut_on_and_not_from_its_answer(void **state)
{
	struct inside *inside = putting_process();

	assert_false(inside_is_sure(inside));
	assert_false(is_left_out(inside, 0, START + MS(10)));
	changes.put_ns = START + MS(10);
	assert_false(is_left_out(inside, 0, START + MS(10) - 1));
	assert_true(is_left_out(inside, 0, START + MS(10)));
	assert_false(is_left_out(inside, REFUSED, START + MS(11)));
	assert_false(agent_s_is_left_out(inside, 0, START + MS(11)));
	diverted(0, START + MS(10));
	changes.put_ns = 0;
	assert_true(is_left_out(inside, 0, START + MS(300)));
	assert_false(is_left_out(inside, 0, START + MS(10) - 1));
	assert_int_equal(flagged, INSIDE_ANY | 2);
	inside_turn(inside, START + MS(301));
	assert_true(inside_is_sure(inside));
	inside_free(inside);
}

static void test_calls_are_the_probes_from_the_cut_on_when_entries_are_put_back(void **state)
{
	struct inside *inside = diverted_process();

	inside_stop(inside);
	inside_turn(inside, START + MS(50));
	assert_true(changes.takes);
	assert_true(is_left_out(inside, 0, START + MS(60)));
	changes.back_ns = START + MS(60);
	assert_true(is_left_out(inside, 0, START + MS(60) - 1));
	assert_false(is_left_out(inside, 0, START + MS(60)));
	taken_back(0, START + MS(60));
	assert_false(is_left_out(inside, 0, START + MS(60)));
	inside_free(inside);
}

/* Who wrote was killed, and the memory does not tell: probes alone count, and that is told. */
static void test_of_what_nobody_knows_nothing_is_told_twice(void **state)
{
	struct inside *inside = putting_process();
	const struct divert_result result = { .pid = (pid_t)PROCESS,
		                              .plan = PLAN,
		                              .rc = -ECHILD,
		                              .why = "it was killed",
		                              .since_ns = START + MS(10) };

	changes.put_ns = START + MS(10);
	changes.unknown = true;
	assert_false(is_left_out(inside, 0, START + MS(9)));
	assert_string_equal(missed, "");
	assert_true(agent_s_is_left_out(inside, 0, START + MS(11)));
	assert_non_null(strstr(missed, "calls from 10 ms on: who wrote to its entries was killed, "
	                               "and which of them were diverted is not known"));
	assert_false(is_left_out(inside, 0, START + MS(11)));
	assert_int_equal(fake.turned, AGENT_SLOT_PASSES_ON);
	assert_int_equal(fake.turned_n, 3);
	changes.done(changes.data, &result);
	changes.put_ns = 0;
	assert_true(agent_s_is_left_out(inside, 0, START + MS(12)));
	assert_false(is_left_out(inside, 0, START + MS(12)));
	inside_turn(inside, START + MS(20));
	assert_false(inside_is_sure(inside));
	inside_free(inside);
}

/* Jumps that stay lead to thunks that pass on, and perhaps not to probes. */
static void test_entries_that_others_have_changed_are_told_of(void **state)
{
	struct inside *inside = diverted_process();
	const struct divert_result result = {
		.pid = (pid_t)PROCESS, .since_ns = START + MS(60), .put_back = 1, .changed = 2
	};

	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	assert_true(changes.takes);
	changes.done(changes.data, &result);
	assert_non_null(strstr(missed, "calls of 2 functions from 60 ms on: others have changed "
	                               "them, so that they could not be put back"));
	inside_free(inside);
}

static void test_entries_that_may_be_put_back_are_told_of(void **state)
{
	struct inside *inside = diverted_process();

	inside_stop(inside);
	inside_turn(inside, START + MS(50));
	taken_back(-ECHILD, START + MS(60));
	assert_non_null(strstr(missed, "calls from 60 ms on: "));
	assert_non_null(strstr(missed, "which of them were put back is not known"));
	inside_free(inside);
}

static void test_what_an_agent_records_is_a_call_of_its_hook(void **state)
{
	struct inside *inside = diverted_process();
	struct order_source source = inside_source(inside);
	const struct wire_call *call;

	record(1, now() - 1000);
	call = (const struct wire_call *)source.take(source.data, UINT64_MAX);
	assert_non_null(call);
	assert_int_equal(call->head.hook, hooks[1].id);
	assert_int_equal(call->head.flags, WIRE_BY_AGENT);
	assert_int_equal(call->word[WIRE_AT_REG], 77);
	assert_false(inside_leaves_out(inside, &call->head));
	source.release(source.data, &call->head);
	inside_free(inside);
}

/* For who joins it to the work that it began. */
static void test_of_a_call_it_is_told_whose_and_when_it_was(void **state)
{
	struct inside *inside = diverted_process();
	struct {
		struct agent_probed head;
		uint64_t word[WIRE_AT_STACK];
	} told = { 0 };
	struct correlate_span call = { .end_ns = 0 };

	record(1, now() - 1000);
	told.head = told_of;
	told.head.begin += 100;
	told.head.end = told.head.begin + 50;
	assert_true(inside_record(inside, PROCESS, &told.head.head, &call));
	assert_int_equal(call.pid, PROCESS);
	assert_int_equal(call.tid, PROCESS);
	assert_int_equal(call.begin_ns, told.head.begin);
	assert_int_equal(call.end_ns, told.head.end);
	memset(&call, 0, sizeof(call));
	told.head.head.lane = 3; /* no such slot */
	assert_true(inside_record(inside, PROCESS, &told.head.head, &call));
	assert_int_equal(call.end_ns, 0);
	inside_free(inside);
}

static void test_records_that_make_no_sense_are_counted(void **state)
{
	struct inside *inside = diverted_process();
	struct order_source source = inside_source(inside);
	uint64_t lost[LOST_COUNT] = { 0 };

	record(3, now() - 1000);           /* no such slot */
	record(1, 5);                      /* before the trace */
	record(1, now() + 1000000000000u); /* a time to come */
	assert_null(source.take(source.data, UINT64_MAX));
	fake.lost.probes[AGENT_PROBE_RING] = 4;
	inside_fill_lost(inside, lost);
	assert_int_equal(lost[LOST_GPU_RECORDS], 3);
	assert_int_equal(lost[LOST_RING_FULL], 4);
	inside_free(inside);
}

/* ---- what cannot be ------------------------------------------------------------------------ */

static void test_a_process_that_does_not_stop_is_tried_again(void **state)
{
	struct inside *inside = open_inside(0);

	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	diverted(-EAGAIN, 0);
	inside_turn(inside, START + MS(2));
	assert_int_equal(changes.n_puts, 1);
	inside_turn(inside, START + MS(1000));
	assert_int_equal(changes.n_puts, 2);
	assert_int_equal(changes.n_freed, 0);
	diverted(0, START + MS(1001));
	assert_true(is_left_out(inside, 0, START + MS(1001)));
	inside_free(inside);
}

static void test_what_is_refused_keeps_its_probes_and_its_plan_is_freed(void **state)
{
	struct inside *inside = open_inside(0);

	agent_comes(inside, 100);
	answer(-ENOMEM, 0);
	assert_non_null(strstr(notices, "keeps its probes: there is no room"));
	assert_int_equal(changes.n_freed, 1);
	assert_false(is_left_out(inside, 0, START + MS(11)));
	inside_turn(inside, START + MS(5000));
	assert_false(changes.puts);
	inside_free(inside);
	assert_int_equal(changes.n_freed, 1);
}

/* Its user has as many as there may be: the process's agent is asked for nothing. */
static void test_a_module_without_a_plan_keeps_its_probes(void **state)
{
	struct inside *inside;

	plans_are_taken = true;
	inside = open_inside(0);
	agent_comes(inside, 100);
	plans_are_taken = false;
	assert_int_equal(fake.bytes, 0);
	assert_non_null(strstr(notices, "keeps its probes: all plans are taken"));
	inside_free(inside);
	assert_int_equal(changes.n_freed, 0);
}

static void test_a_plan_that_waits_for_its_file_is_freed_with_its_module(void **state)
{
	struct inside *inside = open_inside(0);

	look_for = 100;
	agent_comes(inside, 100);
	assert_int_equal(changes.n_freed, 0);
	inside_free(inside);
	look_for = 0;
	assert_int_equal(changes.n_freed, 1);
}

static void test_more_functions_than_slots_keep_their_probes(void **state)
{
	struct inside *inside = open_inside(0);

	agent_comes(inside, 2);
	answer(0, AREA);
	assert_int_equal(fake.n_slots, 0);
	assert_non_null(strstr(notices, "no room for so many functions"));
	inside_free(inside);
}

static void test_a_process_that_cannot_be_entered_is_told_of_once(void **state)
{
	struct inside *inside = open_inside(0);
	const struct agent_status status = { .pid = PROCESS,
		                             .state = AGENT_FAILED,
		                             .why = "it is static" };

	fake.options.state(fake.options.data, &status);
	fake.options.state(fake.options.data, &status);
	assert_non_null(strstr(notices, "keeps its probes: it is static\n"));
	assert_null(strstr(strstr(notices, "static") + 1, "static"));
	assert_false(is_left_out(inside, 0, START + MS(11)));
	inside_free(inside);
}

/* ---- ends ---------------------------------------------------------------------------------- */

static void test_after_an_agent_ended_calls_are_the_probes(void **state)
{
	struct inside *inside = diverted_process();
	uint64_t before = now();

	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED, .why = "it said nonsense" });
	assert_true(is_left_out(inside, 0, before));
	assert_false(is_left_out(inside, 0, now()));
	assert_int_equal(flagged, 0);
	assert_true(changes.takes);
	assert_string_equal(missed, ""); /* it is not known yet until when */
	taken_back(0, START + MS(40));
	assert_non_null(strstr(missed, " to 40 ms: it said nonsense"));
	inside_free(inside);
}

static void test_an_agent_that_ends_without_a_word_is_told_where_its_process_goes_on(void **state)
{
	struct inside *inside = diverted_process();

	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	inside_exit(inside, (pid_t)PROCESS, START + MS(30));
	assert_non_null(strstr(missed, " to 30 ms: its agent has ended, as when"));
	inside_free(inside);

	inside = diverted_process();
	record(1, now() - 1000);
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	assert_false(is_left_out(inside, 0, now()));
	taken_back(-EPERM, 0);
	assert_non_null(strstr(missed, " ms on: its agent has ended, as when"));
	inside_free(inside);
}

static void test_an_agent_that_ends_with_its_program_leaves_no_gap(void **state)
{
	struct inside *inside = diverted_process();
	uint64_t exec_ns = now();

	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	taken_back(-ESRCH, 0);
	inside_exec(inside, (pid_t)PROCESS, exec_ns);
	assert_string_equal(missed, "");
	inside_free(inside);

	inside = diverted_process(); /* it closed its descriptors, and executed another one then */
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	taken_back(-ESRCH, 0);
	inside_exec(inside, (pid_t)PROCESS, now());
	assert_non_null(strstr(missed, " ms: its agent has ended, as when"));
	inside_free(inside);
}

static void test_an_agent_that_ends_while_entries_are_written_tells_of_no_more_calls(void **state)
{
	struct inside *inside = open_inside(0);

	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	diverted(0, START + MS(10));
	assert_int_equal(flagged & ~INSIDE_ANY, 0);
	assert_false(is_left_out(inside, 0, START + MS(11)));
	inside_turn(inside, START + MS(30));
	assert_true(changes.takes);
	inside_free(inside);

	inside = putting_process(); /* what it has told by then is not told by the probes as well */
	record(1, START + MS(12));
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	diverted(0, START + MS(10));
	assert_false(is_left_out(inside, 0, START + MS(9)));
	assert_true(is_left_out(inside, 0, START + MS(12)));
	assert_false(is_left_out(inside, 0, START + MS(13)));
	inside_free(inside);

	inside = open_inside(0);
	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	diverted(-EIO, 0);
	inside_turn(inside, START + MS(30));
	inside_finish(inside);
	assert_string_equal(missed, ""); /* nothing was diverted */
	inside_free(inside);
}

static void test_a_library_that_was_unloaded_is_the_probes_again(void **state)
{
	struct inside *inside = diverted_process();

	inside_mapped(inside, (pid_t)PROCESS, START + MS(20));
	assert_int_equal(flagged, INSIDE_ANY | 2); /* still there: it was another file */
	jumps_there = false;
	inside_mapped(inside, (pid_t)PROCESS, START + MS(30));
	assert_int_equal(flagged, INSIDE_ANY);
	assert_true(is_left_out(inside, 0, START + MS(29)));
	assert_false(is_left_out(inside, 0, START + MS(30)));
	inside_free(inside);
}

/* A process may map files without end. What it does after that is not known, and told. */
static void test_looks_whether_it_was_unloaded_are_the_user_s_time(void **state)
{
	struct inside *inside;

	person = 1002;
	inside = diverted_process();
	missed[0] = '\0';
	memory_takes_ns = MS(1000);
	inside_mapped(inside, (pid_t)PROCESS, START + MS(20));
	assert_string_equal(missed, "");
	jumps_there = false;
	inside_mapped(inside, (pid_t)PROCESS, START + MS(30));
	assert_non_null(strstr(missed, "calls from 30 ms on may be missing"));
	missed[0] = '\0';
	inside_mapped(inside, (pid_t)PROCESS, START + MS(40));
	assert_string_equal(missed, "");
	memory_takes_ns = 0;
	inside_free(inside);
	person = 0;
}

/* Each time that an agent comes all that the process has mapped is gone through. */
static void test_searches_for_modules_are_the_user_s_time(void **state)
{
	struct inside *inside;

	person = 1003;
	maps_take_ns = MS(1000);
	maps_listed = 0;
	inside = open_inside(0);
	for (int i = 0; i < 3; i++)
		agent_comes(inside, 100);
	assert_int_equal(maps_listed, 1);
	maps_take_ns = 0;
	inside_free(inside);
	person = 0;
}

static void test_after_exec_and_exit_nothing_is_left(void **state)
{
	struct inside *inside = diverted_process();

	inside_exec(inside, (pid_t)PROCESS, START + MS(40));
	assert_int_equal(changes.gone, PROCESS);
	assert_false(is_left_out(inside, 0, START + MS(41)));
	inside_free(inside);
	inside = diverted_process();
	inside_exit(inside, (pid_t)PROCESS, START + MS(40));
	assert_int_equal(changes.gone, PROCESS);
	assert_false(is_left_out(inside, 0, START + MS(41)));
	inside_free(inside);
}

static void test_a_child_is_told_of_and_keeps_its_probes(void **state)
{
	struct inside *inside = diverted_process();

	inside_forked(inside, (pid_t)PROCESS, 4243, START + MS(40));
	assert_int_equal(changes.forked, 4243);
	inside_forked(inside, 4243, 4244,
	              START + MS(41)); /* whether that has jumps src/divert knows */
	assert_int_equal(changes.forked, 4244);
	inside_exit(inside, 4244, START + MS(42));
	assert_int_equal(changes.gone, 4244);
	inside_free(inside);
}

/* Calls that are read when the others were passed on would be nobody's. */
static void test_at_the_end_agents_are_read_before_calls_are_passed_on(void **state)
{
	struct inside *inside = diverted_process();
	unsigned reads;

	inside_stop(inside);
	reads = fake.reads;
	inside_read_rest(inside, START + MS(60));
	assert_true(fake.stopped);
	assert_true(fake.reads > reads);
	reads = fake.reads;
	inside_finish(inside);
	assert_int_equal(fake.reads, reads);
	inside_free(inside);
}

static void test_entries_are_put_back_before_agents_leave(void **state)
{
	struct inside *inside = diverted_process();

	inside_stop(inside);
	inside_turn(inside, START + MS(50));
	assert_true(changes.takes);
	assert_int_equal(flagged, 0);
	assert_false(fake.stopped);
	taken_back(-EAGAIN, 0);
	changes.takes = false;
	inside_turn(inside, START + MS(200));
	assert_true(changes.takes);
	taken_back(0, START + MS(210));
	assert_true(is_left_out(inside, 0, START + MS(209)));
	assert_false(is_left_out(inside, 0, START + MS(210)));
	inside_turn(inside, START + MS(220));
	assert_true(fake.stopped);
	assert_true(inside_stopped(inside));
	inside_finish(inside);
	assert_non_null(
		strstr(notices, "0 calls of 3 functions were recorded inside of 1 process"));
	inside_free(inside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_is_diverted_step_by_step),
		cmocka_unit_test(test_nobody_waits_until_a_file_was_looked_at),
		cmocka_unit_test(test_areas_of_earlier_sessions_come_first),
		cmocka_unit_test(test_why_probes_were_kept_to_the_end_is_told),
		cmocka_unit_test(test_calls_belong_to_who_saw_their_begin),
		cmocka_unit_test(test_a_module_more_than_the_programs_can_tell_apart_is_looked_at),
		cmocka_unit_test(test_calls_that_another_file_s_hook_tells_of_are_left_out_too),
		cmocka_unit_test(test_what_a_process_has_mapped_is_listed_once),
		cmocka_unit_test(test_lists_of_what_is_mapped_are_the_user_s_time),
		cmocka_unit_test(test_calls_of_a_second_copy_that_the_process_has_mapped_are_kept),
		cmocka_unit_test(test_functions_whose_stacks_are_walked_keep_their_probes),
		cmocka_unit_test(test_calls_that_are_summed_up_are_sent_until_their_process_ends),
		cmocka_unit_test(test_live_memory_is_followed_by_probes),
		cmocka_unit_test(test_the_runtime_keeps_probes_as_the_driver_does),
		cmocka_unit_test(
			test_launches_of_the_runtime_are_recorded_as_long_as_programs_look),
		cmocka_unit_test(test_calls_are_an_agent_s_from_the_cut_on_and_not_from_its_answer),
		cmocka_unit_test(
			test_calls_are_the_probes_from_the_cut_on_when_entries_are_put_back),
		cmocka_unit_test(test_of_what_nobody_knows_nothing_is_told_twice),
		cmocka_unit_test(test_entries_that_others_have_changed_are_told_of),
		cmocka_unit_test(test_entries_that_may_be_put_back_are_told_of),
		cmocka_unit_test(test_what_an_agent_records_is_a_call_of_its_hook),
		cmocka_unit_test(test_of_a_call_it_is_told_whose_and_when_it_was),
		cmocka_unit_test(test_records_that_make_no_sense_are_counted),
		cmocka_unit_test(test_a_process_that_does_not_stop_is_tried_again),
		cmocka_unit_test(test_what_is_refused_keeps_its_probes_and_its_plan_is_freed),
		cmocka_unit_test(test_a_module_without_a_plan_keeps_its_probes),
		cmocka_unit_test(test_a_plan_that_waits_for_its_file_is_freed_with_its_module),
		cmocka_unit_test(test_more_functions_than_slots_keep_their_probes),
		cmocka_unit_test(test_a_process_that_cannot_be_entered_is_told_of_once),
		cmocka_unit_test(test_after_an_agent_ended_calls_are_the_probes),
		cmocka_unit_test(test_an_agent_that_ends_with_its_program_leaves_no_gap),
		cmocka_unit_test(
			test_an_agent_that_ends_without_a_word_is_told_where_its_process_goes_on),
		cmocka_unit_test(
			test_an_agent_that_ends_while_entries_are_written_tells_of_no_more_calls),
		cmocka_unit_test(test_a_library_that_was_unloaded_is_the_probes_again),
		cmocka_unit_test(test_looks_whether_it_was_unloaded_are_the_user_s_time),
		cmocka_unit_test(test_searches_for_modules_are_the_user_s_time),
		cmocka_unit_test(test_after_exec_and_exit_nothing_is_left),
		cmocka_unit_test(test_a_child_is_told_of_and_keeps_its_probes),
		cmocka_unit_test(test_at_the_end_agents_are_read_before_calls_are_passed_on),
		cmocka_unit_test(test_entries_are_put_back_before_agents_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
