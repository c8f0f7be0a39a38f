/* SPDX-License-Identifier: MIT */
/*
 * The inside of gpu.h: gpu.c (opening, turns, ends of processes), gpu_release.c (what agents tell),
 * gpu_release.c (what becomes of it).
 */
#pragma once

#include "agent/agents.h"
#include "base/map.h"
#include "capture/gpu/gpu.h"
#include "capture/gpu/gpu_calls.h"
#include "capture/gpu/gpu_nodes.h"
#include "capture/gpu/gpu_order.h"
#include "capture/gpu/gpu_records.h"
#include "capture/gpu/gpu_targets.h"
#include "capture/tids.h"

/* A process that has an agent, or had one. */
struct gpu_times_process {
	struct gpu_times *gpu;
	uint32_t pid;
	uint32_t agent;  /* number of the agent, and of its times with CUPTI */
	uint64_t person; /* whose it is (probe/person.h) */
	struct gpu_records *records;
	const struct hook **hooks; /* of launches, by the number of their name */
	uint32_t n_hooks;
	bool running;      /* its agent measures */
	uint64_t state_ns; /* when its agent said last that it is there */
	bool told_running;
	bool measured; /* an agent did, in the program that it is */
	bool too_late; /* it was told that the trace ended first: what comes is not taken */
	uint64_t clock_error_ns;
	uint64_t since_ns, until_ns; /* it measures; until 0: still */
	struct unrecorded unrecorded;
	struct gpu_nodes *nodes; /* NULL: of no graphs */
	uint32_t stalls_told;    /* bits of enum agent_stalls_what */
	char *told;              /* the last sentence on what went wrong */
	unsigned n_told;         /* such sentences that the user was told, of all its programs */
	UT_hash_handle hh;
};

struct gpu_times {
	struct gpu_options options;
	struct agents *agents;
	struct gpu_targets *targets;
	struct gpu_order *order;
	struct tids *tids;
	struct gpu_calls *calls; /* these two: NULL where probes tell of all launches */
	struct gpu_launches *launches;
	struct gpu_times_process *processes, *recent;
	uint64_t begin_ns, now_ns;
	pid_t command;
	bool held;         /* the command is */
	uint32_t n_agents; /* ever */
	bool measured;     /* an agent did */
	bool windows;      /* of a part of the time: not of each launch records come */
	bool missed;       /* a process has no GPU times, or not all, and that was told */
	bool stopping;
	const struct process *exec_from; /* between gpu_exec and gpu_execed */
	uint64_t exec_ns;
	uint64_t clock_error_ns;
	uint64_t early_ns; /* at most, work seemed to begin before its call */
	size_t not_in;     /* processes that were told of as such */
	uint64_t late, bad_times, bad_records, no_call, unrecorded; /* see gpu_fill_lost */
	uint64_t crowded;   /* items of who had his share of those that wait */
	struct err failure; /* of a consumer, while agents were read */
};

struct gpu_times_process *gpu_process_get(struct gpu_times *gpu, uint32_t pid);

/* NULL: there is none. Each kernel asks some times, and mostly of the process of the one before. */
static inline struct gpu_times_process *gpu_process_find(const struct gpu_times *gpu, uint32_t pid)
{
	struct gpu_times_process *recent = gpu->recent;

	return recent && recent->pid == pid ? recent : MAP_FIND(gpu->processes, &pid);
}
struct gpu_nodes *gpu_process_nodes(struct gpu_times_process *process);

/* Its numbers of names and shapes are those of an agent that is no more. */
void gpu_records_renew(struct gpu_times *gpu, struct gpu_times_process *process);

/* For agents_options; `data` is the struct gpu_times. */
void gpu_on_record(void *data, uint32_t pid, const struct agent_head *record);
void gpu_on_unmeasured(void *data, uint32_t pid, uint64_t from_ns, uint64_t until_ns);
void gpu_on_state(void *data, const struct agent_status *status);

/* A sentence on a process, to the user, once, and no more than 16 of a process; `missed`: it has no
 * GPU times for that. */
void gpu_tell_trouble(struct gpu_times *gpu, struct gpu_times_process *process, const char *why,
                      bool missed);

/* The same without a notice: what was missed. */
void gpu_tell_missed(struct gpu_times *gpu, struct gpu_times_process *process, const char *why);

/* The same of stall reasons: GPU times are not missed for that. */
void gpu_tell_stalls(struct gpu_times *gpu, struct gpu_times_process *process, const char *why);

/* What an agent tells of stalls (AGENT_STALL and the two after it). False: it makes no sense. */
bool gpu_take_stalls(struct gpu_times *gpu, struct gpu_times_process *process,
                     const struct agent_head *record);

/* The number of an item's call, as soon as it is known: only the last ones are remembered. */
void gpu_find_call(void *gpu, struct gpu_item *item);

/* Whether what ended before it must have come, and its call as well. */
bool gpu_may_pass(const struct gpu_times *gpu, const struct gpu_item *item);

/* Pass on the first, and all that ended until then. 0, or what a consumer said. */
int gpu_pass_first(struct gpu_times *gpu, struct err *err);
int gpu_pass_until(struct gpu_times *gpu, uint64_t end_ns, struct err *err);
