/* SPDX-License-Identifier: MIT */
/*
 * GPU times in a capture: agents are brought into the targets, and what they tell becomes events.
 * Activities and ranges wait until what ended before them must have come, so they are passed on
 * about a second after their end.
 *
 *   gpu_open, gpu_environment
 *   gpu_running, gpu_called      what shows that a process has CUDA
 *   gpu_turn                     often; before the records of calls are read
 *   gpu_exec, gpu_exit           before the pipeline is told
 *   gpu_stop, gpu_finish, gpu_free
 *
 * What goes wrong with agents is told to the user and becomes a miss; the capture goes on.
 */
#pragma once

#include "agent/agents.h"
#include "capture/capture.h"
#include "capture/gpu/correlate.h"
#include "capture/order.h"
#include "capture/pipeline.h"
#include "probe/modules.h"
#include "probe/programs.h"

struct gpu_times;

struct gpu_options {
	const struct capture_gpu *settings;
	enum target_kind target;
	bool follow; /* what a command starts is a target, too */
	struct pipeline *pipeline;
	struct modules *modules;
	struct programs *programs; /* is asked which calls threads are in; NULL: nothing is */
	struct correlate *correlate;
	bool all_launches; /* that can have work are seen, and known to be no graph's */
	bool each_launch;  /* is recorded: work whose launch is not lacks it */
	bool launches;     /* agents may tell of launches instead of probes */
	bool nodes;        /* of graphs are told of: where they are made is walked */
	size_t ring_bytes; /* of each agent's ring; 0: by what it has to tell */
	/* Calls that the same agents record inside of processes, and who takes their records:
	 * false where one is none of these. NULL: nobody. Of a call that it took *call tells the
	 * thread and the times; without an end, it took none. */
	struct agents_probes probes;
	bool (*probed)(void *data, uint32_t pid, const struct agent_head *record,
	               struct correlate_span *call);
	void *probes_data;     /* for both */
	struct budget *budget; /* of what agents make it keep; may be NULL */
	void (*notice)(void *data, const char *text);
	void *data;
};

int gpu_open(const struct gpu_options *options, struct gpu_times **gpu, struct err *err);
void gpu_free(struct gpu_times *gpu);

struct agents *gpu_agents(struct gpu_times *gpu);

/* The launches that agents told of, as records. */
struct order_source gpu_source(struct gpu_times *gpu);

/* What a command is to have in its environment; owned by `gpu`. */
int gpu_environment(struct gpu_times *gpu, char *const **environment, struct err *err);

/*
 * The trace begins now; `command` is the process that is started, 0 where there is none. `held`:
 * it and what it starts are traced by ptrace already, so that nothing else can enter them.
 */
void gpu_begin(struct gpu_times *gpu, uint64_t now_ns, pid_t command, bool held);

int gpu_fd(const struct gpu_times *gpu); /* for epoll: readable when there is something to do */

/* See pipeline_options.launched. */
void gpu_launched(struct gpu_times *gpu, uint32_t pid, const struct call *call);

/* A node of a CUDA graph was made by a call with this stack, which may be NULL. */
void gpu_node_made(struct gpu_times *gpu, uint32_t pid, uint64_t node, const struct stack *stack);

void gpu_running(struct gpu_times *gpu, pid_t pid); /* ran before, and has the driver */
void gpu_called(struct gpu_times *gpu, const struct wire_call *call);

void gpu_forked(struct gpu_times *gpu); /* a target has a child */

/* Whether this is a launch that an agent told of already. To be asked of each record, in order. */
bool gpu_is_double(struct gpu_times *gpu, const struct wire_head *record);

/* These pass events on. They return 0, or what a consumer returned, with `err` set. */
int gpu_turn(struct gpu_times *gpu, uint64_t now_ns, struct err *err);
int gpu_exit(struct gpu_times *gpu, pid_t pid, uint64_t time_ns, struct err *err);
int gpu_exec(struct gpu_times *gpu, pid_t pid, uint64_t time_ns, struct err *err);

/* After the pipeline was told: what the new program did already is its own. */
void gpu_execed(struct gpu_times *gpu, pid_t pid);

/*
 * Whether an agent is to come: CUDA works in a process and none measures there or has failed, or
 * one is on its way. Whether one ever measured. Whether there are processes with CUDA, but GPU
 * times of none.
 */
bool gpu_is_awaited(const struct gpu_times *gpu);
bool gpu_measured(const struct gpu_times *gpu);
bool gpu_came_to_nothing(const struct gpu_times *gpu);

/* Whether this call, in which a thread is, is the one that loads an agent: before the agent has
 * said a word nothing else tells that one comes, and on a busy machine that takes long. */
bool gpu_is_on_its_way(const struct gpu_times *gpu, const struct wire_call *open);

/* Agents are told to leave. True when all have. */
void gpu_stop(struct gpu_times *gpu);
bool gpu_stopped(const struct gpu_times *gpu);

/* There will be no more calls, and nothing is read of agents: passes on what is left. Those agents
 * that are still there are told about. */
int gpu_finish(struct gpu_times *gpu, struct err *err);

/* Adds to lost[]; sets gpu_times and gpu_clock_error_ns. */
void gpu_fill_lost(const struct gpu_times *gpu, uint64_t lost[LOST_COUNT]);
void gpu_fill_run(const struct gpu_times *gpu, struct run_info *run);
uint64_t
gpu_turned_away(const struct gpu_times *gpu); /* processes beyond those that are measured */
