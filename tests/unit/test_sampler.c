// SPDX-License-Identifier: MIT
/* A sampler without programs in the kernel: records are made here. */
#include "unit.h"

#include "bpf/wire.h"
#include "bpf/wire_stacks.h"
#include "capture/pipeline.h"
#include "capture/stacks/sampler.h"
#include "capture/stacks/stack_names.h"
#include "probe/programs.h"

/* ---- what it is beside --------------------------------------------------------------------- */

static struct wire_state state_of_programs;
static const struct process eve = { .id = 1, .pid = 1001, .person = 1001 };
static const struct process ann = { .id = 2, .pid = 1002, .person = 1002 };

struct wire_state *__wrap_programs_state(struct programs *programs);
int __wrap_programs_map(const struct programs *programs, const char *name);
const struct process *__wrap_pipeline_process(struct pipeline *pipeline, uint32_t pid);

const struct stack *__wrap_stack_names_find(struct stack_names *names,
                                            const struct process *process,
                                            const struct wire_stack_entries *record);

const struct stack *__wrap_stack_names_find(struct stack_names *names,
                                            const struct process *process,
                                            const struct wire_stack_entries *record)
{
	static const struct stack stack;

	return &stack;
}

struct wire_state *__wrap_programs_state(struct programs *programs)
{
	return &state_of_programs;
}

int __wrap_programs_map(const struct programs *programs, const char *name)
{
	return -1;
}

const struct process *__wrap_pipeline_process(struct pipeline *pipeline, uint32_t pid)
{
	return pid == ann.pid ? &ann : &eve;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* As the programs do, which remember what they have sent. */
static void send(struct sampler *sampler, const struct process *process, uint64_t id)
{
	struct wire_stack_entries record = {
		.head = { .type = WIRE_STACK_ENTRIES, .tgid = process->pid }, .id = id
	};
	struct err err = { 0 };

	assert_int_equal(sampler_record(sampler, &record.head, &err), 1);
}

static bool is_known(struct sampler *sampler, const struct process *process, uint64_t id)
{
	return sampler_numbered_stack(sampler, process->pid, id) != NULL;
}

/* One who has stacks without end pushes out those of others, which are then asked for again. */
static void test_stacks_that_are_forgotten_are_sent_anew(void **unused)
{
	const struct sampler_options options = { .walks = false };
	struct sampler *sampler;
	struct err err = { 0 };
	uint64_t id = 0;

	assert_int_equal(sampler_new(&options, &sampler, &err), 0);
	send(sampler, &ann, 1);
	while (is_known(sampler, &ann, 1) && id < 1000000)
		send(sampler, &eve, ++id);
	assert_true(id > 100000 && id < 1000000);
	assert_int_equal(state_of_programs.stacks_turn, 1);
	send(sampler, &ann, 1);
	assert_true(is_known(sampler, &ann, 1));
	sampler_free(sampler);
}

static void begin_call(struct sampler *sampler, const struct process *process, uint32_t tid,
                       uint64_t begin_ns)
{
	const struct wire_call_stack record = { .head = { .type = WIRE_CALL_STACK,
		                                          .tgid = process->pid,
		                                          .tid = tid,
		                                          .time_ns = begin_ns },
		                                .stack = 1 };
	struct err err = { 0 };

	assert_int_equal(sampler_record(sampler, &record.head, &err), 1);
}

static uint64_t without_stack(const struct sampler *sampler)
{
	struct sampler_figures figures;

	sampler_figures(sampler, &figures);
	return figures.without_stack;
}

/* A wait of seconds has its stack beside any number of threads that call once, and end. */
static void test_threads_that_come_and_go_leave_others_calls_their_stacks(void **unused)
{
	const struct sampler_options options = { .walks = false };
	struct sampler *sampler;
	struct err err = { 0 };

	assert_int_equal(sampler_new(&options, &sampler, &err), 0);
	send(sampler, &ann, 1);
	send(sampler, &eve, 1);
	begin_call(sampler, &ann, ann.pid, 100);
	for (uint32_t tid = 10000; tid < 110000; tid++) {
		begin_call(sampler, &eve, tid, 200 + tid);
		assert_non_null(sampler_call_stack(sampler, tid, 200 + tid));
	}
	assert_non_null(sampler_call_stack(sampler, ann.pid, 100));
	assert_int_equal(without_stack(sampler), 0);
	sampler_free(sampler);
}

/* Where they end within their calls there is no end of these, and what others lose is counted. */
static void test_calls_that_are_forgotten_are_counted(void **unused)
{
	const struct sampler_options options = { .walks = false };
	struct sampler *sampler;
	struct err err = { 0 };

	assert_int_equal(sampler_new(&options, &sampler, &err), 0);
	send(sampler, &ann, 1);
	send(sampler, &eve, 1);
	begin_call(sampler, &ann, ann.pid, 100);
	for (uint32_t tid = 10000; tid < 30000; tid++)
		begin_call(sampler, &eve, tid, 200 + tid);
	assert_null(sampler_call_stack(sampler, ann.pid, 100));
	assert_true(without_stack(sampler) > 10000);
	sampler_free(sampler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_that_are_forgotten_are_sent_anew),
		cmocka_unit_test(test_threads_that_come_and_go_leave_others_calls_their_stacks),
		cmocka_unit_test(test_calls_that_are_forgotten_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
