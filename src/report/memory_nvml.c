// SPDX-License-Identifier: MIT
#include "report/memory_nvml.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/order.h"
#include "base/xalloc.h"

/* What the last process with this number holds by calls; there is one of each that NVML told of. */
struct nvml_holder {
	uint64_t key;                  /* machine_pid() */
	const struct process *process; /* NULL: none was met yet */
	uint64_t by_calls, by_nccl;
	UT_hash_handle hh;
};

struct nvml_moment {
	struct memory_nvml_row row; /* of its `beyond` the number of bytes, until it is taken */
	uint64_t key;
	size_t of; /* which of `states` */
};

struct memory_nvml {
	struct nvml_moment *moments; /* by time */
	size_t n, taken;
	struct memory_beyond *states; /* of each process */
	struct nvml_holder *holders;
	struct memory_nvml_row *rows;
};

ORDER_BY(by_time, struct nvml_moment, UP(row.time_ns), UP(of), UP(row.moment));
ORDER_BY(by_process, struct memory_nvml_row, UP(process->id), UP(time_ns));

/* One reading is one row, whatever it is. */
static bool is_told_already(const struct run_memory *memory, enum run_memory_moment moment)
{
	return (moment != RUN_MEMORY_FIRST &&
	        memory[moment].time_ns == memory[RUN_MEMORY_FIRST].time_ns) ||
	       (moment == RUN_MEMORY_MOST &&
	        memory[moment].time_ns == memory[RUN_MEMORY_LAST].time_ns);
}

static void add_process(struct memory_nvml *nvml, const struct run_identity *one, size_t of)
{
	const uint64_t key = (uint64_t)one->machine << 32 | one->pid;

	nvml->states[of].whole = one->memory_whole;
	MAP_MAKE(nvml->holders, key, &key);
	for (enum run_memory_moment i = 0; i < RUN_MEMORIES; i++) {
		struct nvml_moment *moment = &nvml->moments[nvml->n];

		if (!one->memory[i].time_ns || is_told_already(one->memory, i))
			continue;
		moment->row.time_ns = one->memory[i].time_ns;
		moment->row.moment = i;
		moment->row.beyond.gpu_bytes = one->memory[i].bytes;
		moment->key = key;
		moment->of = of;
		nvml->n++;
	}
}

struct memory_nvml *memory_nvml_new(const struct run_info *run)
{
	size_t n = run->n_identities;
	struct memory_nvml *nvml = xcalloc(1, sizeof(*nvml));

	nvml->moments = xcalloc(n * RUN_MEMORIES + 1, sizeof(*nvml->moments));
	nvml->states = xcalloc(n + 1, sizeof(*nvml->states));
	for (size_t i = 0; i < n; i++) {
		if (run->identities[i].memory[RUN_MEMORY_FIRST].time_ns)
			add_process(nvml, &run->identities[i], i);
	}
	qsort(nvml->moments, nvml->n, sizeof(*nvml->moments), by_time);
	if (nvml->n)
		return nvml;
	memory_nvml_free(nvml);
	return NULL;
}

void memory_nvml_free(struct memory_nvml *nvml)
{
	if (!nvml)
		return;
	MAP_FREE(nvml->holders, free);
	free(nvml->moments);
	free(nvml->states);
	free(nvml->rows);
	free(nvml);
}

static void take(struct memory_nvml *nvml, struct nvml_moment *moment)
{
	const struct nvml_holder *holder = MAP_FIND(nvml->holders, &moment->key);
	struct memory_beyond *state = &nvml->states[moment->of];

	if (!holder->process)
		return;
	memory_beyond_take(state, moment->row.beyond.gpu_bytes, holder->by_calls, holder->by_nccl);
	moment->row.process = holder->process;
	moment->row.beyond = *state;
}

static struct nvml_holder *holder_of(struct memory_nvml *nvml, const struct process *process)
{
	const uint64_t key = machine_pid(process);
	struct nvml_holder *holder = MAP_FIND(nvml->holders, &key);

	if (holder && holder->process != process) {
		holder->process = process;
		holder->by_calls = holder->by_nccl = 0;
	}
	return holder;
}

void memory_nvml_event(struct memory_nvml *nvml, const struct event *event)
{
	if (!nvml)
		return;
	while (nvml->taken < nvml->n && nvml->moments[nvml->taken].row.time_ns < event->time_ns)
		take(nvml, &nvml->moments[nvml->taken++]);
	if (event->type == EVENT_PROCESS)
		holder_of(nvml, event->process);
}

void memory_nvml_changed(struct memory_nvml *nvml, const struct memory_change *change)
{
	const struct memory_allocation *a = change->allocation;
	struct nvml_holder *holder;
	uint64_t bytes;

	if (!nvml || !memory_is_in_nvml(a->kind))
		return;
	holder = holder_of(nvml, a->process);
	if (!holder)
		return;
	bytes = change->fate == MEMORY_MADE ? a->bytes : -a->bytes;
	holder->by_calls += bytes;
	if (memory_is_of_nccl(a->stack))
		holder->by_nccl += bytes;
}

const struct memory_nvml_row *memory_nvml_rows(struct memory_nvml *nvml, size_t *n)
{
	*n = 0;
	if (!nvml)
		return NULL;
	while (nvml->taken < nvml->n)
		take(nvml, &nvml->moments[nvml->taken++]);
	free(nvml->rows);
	nvml->rows = xcalloc(nvml->n, sizeof(*nvml->rows));
	for (size_t i = 0; i < nvml->n; i++) {
		if (nvml->moments[i].row.process)
			nvml->rows[(*n)++] = nvml->moments[i].row;
	}
	qsort(nvml->rows, *n, sizeof(*nvml->rows), by_process);
	return nvml->rows;
}
