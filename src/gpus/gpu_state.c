// SPDX-License-Identifier: MIT
#include "gpus/gpu_state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "base/clock.h"
#include "gpus/nvml_process.h"

#define INTERVAL_LEAST_NS 100000000ull

/* What processes before this one had counted of a GPU, so that nothing counts back. */
struct before {
	struct gpu_xids xids;
	uint64_t reads, failures;
};

struct gpu_states {
	struct nvml_process *process;
	uint64_t interval_ns;
	pthread_mutex_t lock; /* of all below */
	uint64_t heard_ns;
	struct nvml_beat beat;
	size_t n;
	struct gpu_state shown[GPUS_MAX];
	struct before before[GPUS_MAX];
};

_Static_assert(sizeof(struct gpu_state) < 8192, "as the header says");

/* ---- what the process tells ---------------------------------------------------------------- */

static void add_before(struct gpu_state *state, const struct before *before)
{
	struct gpu_xids xids = before->xids;

	if (!before->xids.total) {
		xids = state->xids;
	} else {
		for (uint32_t i = 0; i < state->xids.n_codes; i++)
			gpu_xids_add_code(&xids, state->xids.codes[i].code,
			                  state->xids.codes[i].count);
		xids.total += state->xids.total;
	}
	if (state->xids.total) {
		xids.last = state->xids.last;
		xids.last_ns = state->xids.last_ns;
	}
	state->xids = xids;
	state->reads += before->reads;
	state->failures += before->failures;
}

static void take_state(struct gpu_states *states, const struct gpu_state *told)
{
	struct gpu_state *shown = &states->shown[told->index];

	*shown = *told;
	add_before(shown, &states->before[told->index]);
	if (told->index >= states->n)
		states->n = told->index + 1;
}

static void take(void *data, const struct nvml_message *message)
{
	struct gpu_states *states = data;

	LOCKED(&states->lock);
	states->heard_ns = clock_now_ns();
	if (message->head.kind == NVML_MESSAGE_STATE) {
		take_state(states, &message->state);
	} else {
		states->beat = message->beat;
		if (message->beat.n > states->n)
			states->n = message->beat.n;
	}
}

static void gone(void *data, const char *why)
{
	struct gpu_states *states = data;

	LOCKED(&states->lock);
	states->beat = (struct nvml_beat){ 0 };
	snprintf(states->beat.why, sizeof(states->beat.why), "%s", why);
	for (size_t i = 0; i < GPUS_MAX; i++) {
		const struct gpu_state *shown = &states->shown[i];

		states->before[i] = (struct before){ shown->xids, shown->reads, shown->failures };
	}
}

/* ---- for readers --------------------------------------------------------------------------- */

struct gpu_states *gpu_states_new(uint64_t interval_ns)
{
	struct gpu_states *states = xcalloc(1, sizeof(*states));
	const struct nvml_listener listener = { .take = take, .gone = gone, .data = states };

	states->interval_ns = interval_ns > INTERVAL_LEAST_NS ? interval_ns : INTERVAL_LEAST_NS;
	for (uint32_t i = 0; i < GPUS_MAX; i++)
		gpu_state_unknown(&states->shown[i], i);
	pthread_mutex_init(&states->lock, NULL);
	states->process = nvml_process_new(NVML_WANTED_STATES, states->interval_ns, &listener);
	if (states->process)
		return states;
	pthread_mutex_destroy(&states->lock);
	free(states);
	return NULL;
}

static bool is_late(const struct gpu_states *states, uint32_t index, uint64_t now_ns)
{
	uint64_t since_ns = states->beat.since_ns[index];

	return (since_ns && now_ns > since_ns + GPU_LATE_NS) ||
	       now_ns > states->heard_ns + NVML_WIRE_BEAT_NS + GPU_LATE_NS;
}

size_t gpu_states_read(struct gpu_states *states, struct gpu_state *into, size_t room,
                       uint64_t now_ns)
{
	size_t n;

	LOCKED(&states->lock);
	n = states->n < room ? states->n : room;
	for (uint32_t i = 0; i < n; i++) {
		into[i] = states->shown[i];
		into[i].age_ns =
			into[i].read_ns && now_ns > into[i].read_ns ? now_ns - into[i].read_ns : 0;
		if (is_late(states, i, now_ns))
			into[i].answer = GPU_ANSWER_LATE;
	}
	return n;
}

void gpu_states_why(struct gpu_states *states, char *text, size_t size)
{
	LOCKED(&states->lock);
	snprintf(text, size, "%s", states->beat.why);
}

void gpu_states_driver(struct gpu_states *states, char *text, size_t size)
{
	LOCKED(&states->lock);
	snprintf(text, size, "%s", states->beat.driver);
}

void gpu_states_figures(struct gpu_states *states, struct gpu_process_figures *figures)
{
	nvml_process_figures(states->process, figures);
}

void gpu_states_free(struct gpu_states *states)
{
	if (!states)
		return;
	nvml_process_free(states->process);
	pthread_mutex_destroy(&states->lock);
	free(states);
}
