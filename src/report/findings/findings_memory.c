// SPDX-License-Identifier: MIT
/* Findings about memory: allocating and freeing while the program is in its loop. */
#include <stdlib.h>

#include "report/findings/findings_rules.h"

struct allocating {
	struct finding_loop calls;
	struct finding_loop rounds; /* calls that came after a launch that came after a call */
	uint64_t launches_before;   /* when it allocated last */
	uint64_t launches;
};

struct finding_allocation {
	struct allocating *processes;
	size_t n;
};

static void *make_allocation(void)
{
	return xcalloc(1, sizeof(struct finding_allocation));
}

static void free_allocation(void *state)
{
	free(((struct finding_allocation *)state)->processes);
	free(state);
}

/* Memory from a pool costs little and waits for nothing, and address space is none. */
static bool is_dear(enum api_memory memory)
{
	return memory == MEMORY_DEVICE || memory == MEMORY_HOST || memory == MEMORY_MANAGED ||
	       memory == MEMORY_ARRAY;
}

static void allocation_call(void *state, const struct finding_call *call)
{
	struct finding_allocation *all = state;
	struct allocating *process;
	struct finding_example example;

	if (!call->launch && call->call->op != OP_ALLOC && call->call->op != OP_FREE)
		return;
	process = FINDING_AT(all->processes, all->n, call->process->id);
	if (call->launch) {
		process->launches++;
		return;
	}
	if (!process->launches || !is_dear(api_memory(call->call->function->api)))
		return;
	example = finding_example_of(call);
	if (call->call->op == OP_FREE) /* cudaFree(NULL) is asked for to start CUDA */
		example.bytes = 0;
	finding_case(finding_loop_at(&process->calls, call->octave), &example);
	if (process->launches != process->launches_before)
		finding_case(finding_loop_at(&process->rounds, call->octave), &example);
	process->launches_before = process->launches;
}

static void judge_allocation(void *state, const struct finding_rule *rule,
                             const struct finding_verdicts *verdicts)
{
	struct finding_allocation *all = state;

	for (size_t i = 0; i < all->n; i++) {
		const struct finding_process *process = finding_process(verdicts, i);
		struct finding_cases calls, rounds;
		struct buf text = { 0 };
		struct finding *finding;

		if (!process || process->launches < LIMIT_LOOP_LAUNCHES)
			continue;
		calls = finding_loop_end(&all->processes[i].calls, process->octave);
		rounds = finding_loop_end(&all->processes[i].rounds, process->octave);
		if (rounds.count < LIMIT_LOOP_ROUNDS || !finding_is_worth(process, calls.cost_ns))
			continue;
		buf_puts(&text, "in the steady part of the run, ");
		finding_count(&text, calls.count, "call");
		buf_puts(&text, " that allocate or free device, managed or pinned memory, at ");
		buf_u64(&text, rounds.count);
		buf_puts(&text, " places between launches: ");
		buf_duration(&text, calls.cost_ns);
		buf_puts(&text, " in the calls");
		finding = findings_add(verdicts, rule, process);
		finding_set_cases(verdicts, finding, &calls);
		finding_say(finding, &text);
		finding->estimate = "the time in these calls; frees and pinned allocations also "
				    "wait for the GPU, which then runs dry, and that comes on top";
		finding->suggestion = "allocate before the loop and keep it, or allocate from a "
				      "pool (cudaMallocAsync, a caching allocator)";
	}
}

const struct finding_rule rule_allocation = {
	.name = "allocation",
	.title = "allocating and freeing in the loop",
	.needs = NEEDS_DURATIONS,
	.create = make_allocation,
	.call = allocation_call,
	.judge = judge_allocation,
	.free = free_allocation,
};
