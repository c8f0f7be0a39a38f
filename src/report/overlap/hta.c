// SPDX-License-Identifier: MIT
#include "report/overlap/hta.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/work.h"
#include "analysis/by_id.h"
#include "base/array.h"
#include "base/sorter.h"
#include "base/xalloc.h"

#define RECORDS_BYTES (16u << 20)
#define STEP          "ProfilerStep#"
#define NEVER         UINT64_MAX

/* As it is sorted, by its begin. */
struct ran {
	uint64_t begin_ns, end_ns;
	uint64_t asked_ns; /* begin of its call; NEVER: not known */
	uint32_t process;
	uint32_t class; /* enum hta_class */
};

/* A union of what comes in the order of its begins. */
struct hta_sum {
	uint64_t until_ns, ns;
};

struct hta_state {
	const struct process *process;
	uint64_t step_ns;   /* begin of the last step */
	char step_name[48]; /* of the first */
	bool steps;         /* there are two names of steps at least */
	uint64_t first_ns, last_ns;
	struct hta_sum all, compute, communication, either;
	struct hta_row row;
};

struct hta {
	struct work *work;
	struct sorter *sorter;
	struct hta_state *states; /* by process id */
	size_t n_states;
	struct hta_row *rows;
	struct err failure;
};

/* ---- classes -------------------------------------------------------------------------------- */

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

enum hta_class hta_class_of(const char *name)
{
	static const char *const others[] = { "Memcpy", "Memset", "dma", "Sync" };
	static const char *const beginnings[] = { "Stream Wait Event",
		                                  "runFunction",
		                                  "job_exe",
		                                  "packet",
		                                  "pe_exe",
		                                  "cpum_exe_subgraph",
		                                  "collective_subgraph_execution" };
	const char *cuda = strstr(name, "cuda");

	if (begins(name, "nccl") || begins(name, "hip") || begins(name, "hccl") ||
	    strstr(name, "ncclKernel"))
		return HTA_COMMUNICATION;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (strstr(name, others[i]))
			return HTA_OTHER;
	}
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (begins(name, beginnings[i]))
			return HTA_OTHER;
	}
	return begins(name, "cuda") && strstr(cuda, "LaunchKernel") ? HTA_OTHER : HTA_COMPUTE;
}

static enum hta_class class_of(const struct activity *activity)
{
	switch (activity->kind) {
	case ACTIVITY_KERNEL:
		return activity->kernel ? hta_class_of(activity->kernel->name) : HTA_COMPUTE;
	case ACTIVITY_GRAPH_RUN:
		return HTA_COMPUTE;
	default:
		return HTA_OTHER;
	}
}

/* ---- events --------------------------------------------------------------------------------- */

static struct hta_state *state_of(struct hta *hta, const struct process *process)
{
	struct hta_state *state;

	hta->states = by_id_room(hta->states, &hta->n_states, sizeof(*hta->states), process->id);
	state = &hta->states[process->id];
	if (!state->process) {
		state->process = process;
		state->first_ns = NEVER;
	}
	return state;
}

static void keep(struct hta *hta, const struct ran *ran)
{
	if (!hta->failure.code && ran->end_ns > ran->begin_ns)
		sorter_add(hta->sorter, ran->begin_ns, ran, sizeof(*ran), &hta->failure);
}

static void see_activity(void *data, const struct work_done *done, const struct work_call *call)
{
	struct hta *hta = data;

	state_of(hta, done->process);
	keep(hta, &(struct ran){ .begin_ns = done->activity->begin_ns,
	                         .end_ns = done->activity->end_ns,
	                         .asked_ns = call ? call->begin_ns : NEVER,
	                         .process = done->process->id,
	                         .class = class_of(done->activity) });
}

/* In the export a wait on a stream is a row beside it; one for a context has no stream. */
static void see_wait(struct hta *hta, const struct event *event)
{
	if (!event->range->stream)
		return;
	state_of(hta, event->process);
	keep(hta, &(struct ran){ .begin_ns = event->range->begin_ns,
	                         .end_ns = event->range->end_ns,
	                         .asked_ns = event->range->begin_ns,
	                         .process = event->process->id,
	                         .class = HTA_OTHER });
}

static void see_step(struct hta *hta, const struct event *event)
{
	struct hta_state *state = state_of(hta, event->process);
	const struct range *range = event->range;

	if (!*state->step_name)
		snprintf(state->step_name, sizeof(state->step_name), "%s", range->name);
	else if (strncmp(state->step_name, range->name, sizeof(state->step_name) - 1))
		state->steps = true;
	if (range->begin_ns > state->step_ns)
		state->step_ns = range->begin_ns;
}

void hta_event(struct hta *hta, const struct event *event)
{
	work_join(hta->work, event, see_activity, hta);
	if (event->type != EVENT_RANGE)
		return;
	if (event->range->kind == RANGE_SYNC)
		see_wait(hta, event);
	else if (event->range->kind <= RANGE_STARTEND && begins(event->range->name, STEP))
		see_step(hta, event);
}

/* ---- the breakdown -------------------------------------------------------------------------- */

static void add(struct hta_sum *sum, const struct ran *ran)
{
	uint64_t from = ran->begin_ns > sum->until_ns ? ran->begin_ns : sum->until_ns;

	if (ran->end_ns <= from)
		return;
	sum->ns += ran->end_ns - from;
	sum->until_ns = ran->end_ns;
}

static int break_down(void *data, const void *record, size_t bytes)
{
	struct hta *hta = data;
	struct hta_state *state;
	struct ran ran;

	memcpy(&ran, record, sizeof(ran));
	state = &hta->states[ran.process];
	if (state->steps && ran.asked_ns >= state->step_ns) {
		state->row.unasked += ran.asked_ns == NEVER;
		state->row.left_out += ran.asked_ns != NEVER;
		return 0;
	}
	if (ran.begin_ns < state->first_ns)
		state->first_ns = ran.begin_ns;
	if (ran.end_ns > state->last_ns)
		state->last_ns = ran.end_ns;
	add(&state->all, &ran);
	if (ran.class != HTA_OTHER)
		add(&state->either, &ran);
	if (ran.class == HTA_COMPUTE)
		add(&state->compute, &ran);
	else if (ran.class == HTA_COMMUNICATION)
		add(&state->communication, &ran);
	return 0;
}

static struct hta_row row_of(struct hta_state *state)
{
	struct hta_row row = state->row;

	row.process = state->process;
	row.kernel_ns = state->last_ns - state->first_ns;
	row.busy_ns = state->all.ns;
	row.compute_ns = state->compute.ns;
	row.communication_ns = state->communication.ns;
	row.both_ns = row.compute_ns + row.communication_ns - state->either.ns;
	return row;
}

int hta_rows(struct hta *hta, const struct hta_row **rows, size_t *n, struct err *err)
{
	work_tell_rest(hta->work, see_activity, hta);
	*n = 0;
	*rows = hta->rows = xcalloc(hta->n_states + 1, sizeof(*hta->rows));
	if (!hta->failure.code)
		sorter_each(hta->sorter, break_down, hta, &hta->failure);
	if (hta->failure.code) {
		*err = hta->failure;
		return err->code;
	}
	for (size_t i = 0; i < hta->n_states; i++) {
		if (hta->states[i].all.ns)
			hta->rows[(*n)++] = row_of(&hta->states[i]);
	}
	return 0;
}

/* ---- life ----------------------------------------------------------------------------------- */

struct hta *hta_new(struct work *work)
{
	struct hta *hta = xcalloc(1, sizeof(*hta));

	hta->work = work_share(work);
	hta->sorter = sorter_new(RECORDS_BYTES, 0);
	return hta;
}

void hta_free(struct hta *hta)
{
	if (!hta)
		return;
	work_free(hta->work);
	sorter_free(hta->sorter);
	free(hta->states);
	free(hta->rows);
	free(hta);
}
