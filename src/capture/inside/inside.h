/* SPDX-License-Identifier: MIT */
/*
 * Calls recorded inside of the targets (--in-process): where a process has an agent, the entries of
 * its CUDA functions are diverted to it, and what it records takes the place of what the probes
 * tell. A call that began before its function was diverted is the probes', one that begins later is
 * the agent's. What cannot be diverted keeps its probes, and whatever goes wrong leaves them.
 *
 *   inside_new                 first of all: a process is forked that changes code
 *   inside_open                with agents of its own, or
 *   inside_use_agents          with those that bring GPU times
 *   inside_begin, inside_source
 *   inside_turn                often; before the records of calls are read
 *   inside_leaves_out, inside_called, inside_mapped, inside_exit, inside_exec, inside_forked
 *                              as records are passed on
 *   inside_stop, inside_stopped, inside_read_rest, inside_finish, inside_free
 */
#pragma once

#include "agent/agents.h"
#include "capture/gpu/correlate.h"
#include "capture/order.h"
#include "capture/pipeline.h"
#include "capture/target.h"
#include "probe/modules.h"
#include "probe/programs.h"

struct inside;
struct hold;

struct inside_options {
	enum target_kind target;
	bool follow;          /* what a command starts is a target, too */
	bool takes_away;      /* probes that no target needs; it is told of all that targets map */
	bool begins;          /* entries are told of by themselves */
	uint32_t stack_kinds; /* enum wire_stack_kind: stacks of these are walked, */
	struct wire_due due;  /* so often, by agents that are probed for that: */
	/* whether that of a process is, which has just come or is waited for. Functions of
	 * others keep their probes. NULL: none is. */
	bool (*walks)(void *data, pid_t pid, bool came);
	unsigned fold;     /* enum fold_tool: calls are summed up; those of memory keep theirs */
	bool counts;       /* getters that are called all the time are counted only */
	size_t ring_bytes; /* of each agent's ring; 0: the default */
	bool quiet;        /* it was not asked for: nothing is noticed */
	struct pipeline *pipeline;
	struct modules *modules;
	struct programs *programs;
	void (*notice)(void *data, const char *text);
	/* The programs send all calls of a process from now on, if calls are summed up; may be
	 * NULL. */
	void (*marked)(void *data, pid_t pid);
	void *data;
};

/* Before threads are made, and while little memory is used. */
int inside_new(struct inside **inside, struct err *err);
void inside_free(struct inside *inside); /* puts back what is still diverted */

/* `agents`: has none of its own, those that were opened with inside_probes(). */
int inside_open(struct inside *inside, const struct inside_options *options, bool own_agents,
                struct err *err);
void inside_use_agents(struct inside *inside, struct agents *agents);

/* For agents_options. Its `news` is to be called with the inside. */
struct agents_probes inside_probes(const struct inside *inside);

struct order_source inside_source(struct inside *inside);

/* What a command is to have in its environment; owned by `inside`, which has agents of its own. */
int inside_environment(struct inside *inside, char *const **environment, struct err *err);

/* As gpu_begin; `hold`: NULL where no process is held. */
void inside_begin(struct inside *inside, uint64_t now_ns, pid_t command, struct hold *hold);

/* For epoll: readable when there is something to do; -1: there is none. */
int inside_agents_fd(const struct inside *inside);
int inside_divert_fd(const struct inside *inside);

/* A record of an agent; false where it is none of a call. Sets *call for a whole one: its process,
 * thread, begin and end. */
bool inside_record(struct inside *inside, uint32_t pid, const struct agent_head *record,
                   struct correlate_span *call);

/*
 * Of each record, as it is passed on: one of an agent learns what it is nested in. True for what is
 * of use for that only.
 */
bool inside_nests(struct inside *inside, struct wire_head *record);

/* The same of a call that an agent told of. Whether its thread was met before. */
bool inside_nest(struct inside *inside, struct wire_call *call);

/* Of a call: whether its process's agent tells of launches that the runtime refuses, so that nobody
 * else has to look for them. */
bool inside_tells_refused(struct inside *inside, const struct wire_call *call);

/* Of a call that was left out. Its begin may have been passed on before that was known. */
void inside_nests_no_more(struct inside *inside, struct wire_head *record);

/* Whether no cut is under way or unknown, so that what agents tell counts: inside_leaves_out. */
bool inside_is_sure(const struct inside *inside);

/* Of a record that the programs sent: whether an agent told of that call. Of one that an agent
 * sent: whether that is not known, so that it does not count. */
bool inside_leaves_out(struct inside *inside, const struct wire_head *record);

/* Of each record before it is passed on: whether it is the first of a thread of which no program
 * told. Then *thread is what goes before it. */
bool inside_meets_thread(struct inside *inside, const struct wire_head *record,
                         struct wire_process *thread);

/* A call was passed on, whoever saw it. */
void inside_called(struct inside *inside, const struct wire_call *call);

/* Calls that were counted since this was asked last, of each process and function. */
struct inside_counted {
	uint32_t pid;
	uint16_t hook;
	uint64_t calls;
};
void inside_counted(struct inside *inside,
                    void (*each)(void *data, const struct inside_counted *counted), void *data);

/* Whether jumps in a module of a process may be ours: of it, or of who forked it. */
bool inside_writes_to(struct inside *inside, uint32_t pid, const struct module *module);

/* Whether a call that an agent told of met its probe all the same, as far as is known now. */
bool inside_meets_probe(struct inside *inside, const struct wire_call *call);

void inside_mapped(struct inside *inside, pid_t pid, uint64_t time_ns); /* WIRE_MAPPED */
void inside_loaded(struct inside *inside, pid_t pid);                   /* a module */
void inside_forked(struct inside *inside, pid_t parent, pid_t child, uint64_t time_ns);
void inside_exec(struct inside *inside, pid_t pid, uint64_t time_ns);
void inside_exit(struct inside *inside, pid_t pid, uint64_t time_ns);

void inside_turn(struct inside *inside, uint64_t now_ns);

/* Entries are put back, and then, if they are its own, the agents leave. */
void inside_stop(struct inside *inside);
bool inside_stopped(const struct inside *inside);

/* What its agents have written by now, for the last time; they are told to leave. */
void inside_read_rest(struct inside *inside, uint64_t now_ns);

/* There will be no more calls, and nothing is read of agents. Says what was recorded so. */
void inside_finish(struct inside *inside);

/* Allocations that came too fast for their stacks. */
uint64_t inside_stacks_too_fast(const struct inside *inside);

/* Adds to lost[]. */
void inside_fill_lost(const struct inside *inside, uint64_t lost[LOST_COUNT]);
