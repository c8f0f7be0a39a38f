/* SPDX-License-Identifier: MIT */
/*
 * The agents of a capture: gets them into processes, tells them what to do, reads what they write.
 *
 *   agents_new       with what is wanted
 *   agents_environment, agents_enter    for what is started; for what runs already
 *   agents_fd, agents_turn    when there is something to do; a few dozen times a second besides
 *   agents_gone      a process ended: its last records are read
 *   agents_stop, agents_stopped, agents_abandon    at the end
 *   agents_free
 *
 * A target is never harmed: what goes wrong is a state with a sentence, and the capture goes on
 * without GPU times of that process.
 *
 * Calls of diverted functions (options.probes) are a second matter, with or without GPU times:
 *
 *   AGENT_PROBES_READY   is told when an agent is in: how many slots there are, and their thunks
 *   agents_probes_area   memory for code in the process, near a module
 *   agents_probes_set    what slots record, and where their thunks go on
 *   agents_probes_turn   slots begin to record, or only pass on
 *   AGENT_PROBES_ENDED   is told once for each that was ready: nothing is recorded any more
 *
 * Each request is answered once. Code of the process is changed by others: see src/divert.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/inject.h"
#include "agent/wire.h"
#include "base/err.h"
#include "bpf/wire_due.h"

struct agents;

#define AGENT_CLOCK_ERROR_MOST_NS                                                                  \
	1000000000ull /* more is none: clocks are read beside each other */

/*
 * How an agent is, each time that changes; while windows are measured (window_ns) not each time
 * that one begins or ends. A process that ended is AGENT_OFF. Texts are valid during the call.
 */
struct agent_status {
	uint32_t pid; /* as the initial pid namespace counts */
	enum agent_state state;
	enum agent_failure failure;
	const char *why;   /* a sentence for the user: AGENT_FAILED: what, and what to do; with */
			   /* other states what else is to be known, if anything. Else NULL */
	const char *cupti; /* path of the library in use, cleaned for terminals; or NULL */
	uint32_t cupti_version, driver_version;
	/* See struct agent_shared; since the first window began, until the last one ended. */
	uint64_t active_since_ns, active_until_ns;
	uint64_t clock_error_ns;
	enum agent_leftover leftover; /* AGENT_PAUSED, AGENT_OFF: what stays in the target */
	bool nodes_instead;           /* graph launches could not be measured as wholes */
	uint64_t stopped_ns; /* how long a thread of it was stopped to let the agent in; 0: not */
	const uint64_t *stopped_parts; /* and with what, by enum inject_part; NULL: as above */
};

enum agent_probes_news {
	AGENT_PROBES_READY,
	AGENT_PROBES_ANSWER,
	AGENT_PROBES_ENDED,
};

/*
 * What is new with the probes of an agent. Texts are valid during the call. Addresses are what the
 * process says, and are only checked to make sense: see agent_probes.h.
 */
struct agent_probes_answer {
	enum agent_probes_news news;
	/* AGENT_PROBES_READY */
	uint32_t slots; /* how many there are, from 0 on. 0: the process records no calls */
	uint32_t used;  /* those before this one are of earlier sessions; */
	const struct agent_area *areas; /* code that these left, with its slots. Valid during the */
	size_t n_areas;                 /* call, whole pages of user space, slots before `used` */
	uint64_t thunks;                /* where that of slot 0 is, */
	uint32_t thunk_bytes;           /* and how far one is from the next */
	/* AGENT_PROBES_ANSWER */
	int request;   /* what agents_probes_... returned */
	int code;      /* 0, or a negative errno */
	uint64_t area; /* agents_probes_area: where it begins; readable, executable, all zeroes */
	/* A sentence for the user: where `code` is not 0, where there are no slots, and where they
	 * ended because something went wrong. Else NULL. */
	const char *why;
};

struct agents_probes {
	bool wanted;
	bool begins;    /* AGENT_PROBE_BEGUN for each entry */
	bool waits;     /* started programs do, in cuInit, until agents_probes_go; 2 s at most */
	uint32_t clock; /* enum agent_clock */
	struct wire_due due; /* walks, of slots that have an entry */
	/* May call agents_probes_..., but no other function of these. */
	void (*news)(void *data, uint32_t pid, const struct agent_probes_answer *answer);
};

struct agents_options {
	uint32_t kinds; /* enum agent_kind; 0: no GPU times, and nothing of CUPTI is touched */
	struct agents_probes probes;
	uint64_t window_ns, period_ns; /* measure `window_ns` of every `period_ns`; 0: always */
	/* Above 0, without `period_ns`: always, as long as records of what runs cost no process
	 * more of its time than this; then in windows of `window_ns` at most, as far apart as
	 * makes them cost that much. */
	double window_percent;
	size_t ring_bytes; /* of each agent's ring; 0: 8 MiB */
	const char *cupti; /* a libcupti to use; NULL: the agent looks for one */
	/* One whole record, copied; in the order in which the agent wrote. Sizes and ends of texts
	 * were checked, contents were not. */
	void (*record)(void *data, uint32_t pid, const struct agent_head *record);
	void (*state)(void *data, const struct agent_status *status);
	/* The first time that windows are measured for what records cost a process. May be NULL. */
	void (*dear)(void *data, uint32_t pid, double percent, uint64_t window_ns,
	             uint64_t period_ns);
	/* Between two windows (window_ns) it did not measure, nor after the last. May be NULL. */
	void (*unmeasured)(void *data, uint32_t pid, uint64_t from_ns, uint64_t until_ns);
	/* Whether a process that comes by itself (agents_environment) is a target. */
	bool (*wanted)(void *data, pid_t pid);
	void *data;
};

/*
 * Fails when `cupti` is no library that can be read. The options' functions are called by
 * agents_turn, agents_turn_of, agents_enter, agents_gone and agents_abandon, and call none of these
 * themselves.
 */
int agents_new(const struct agents_options *options, struct agents **agents, struct err *err);

/* Ends injections; agents see that the socket closes, and leave by themselves. */
void agents_free(struct agents *agents);

/*
 * "NAME=value" for a command to be started, NULL at the end; owned by `agents`. A value that the
 * caller's environment has for CUDA_INJECTION64_PATH is kept for the agent to pass on to. Fails
 * when no socket, or no file for the library can be had.
 */
int agents_environment(struct agents *agents, char *const **environment, struct err *err);

/* Has an agent enter a running process. How that went comes as a state. Does not block. */
void agents_enter(struct agents *agents, pid_t pid);

int agents_fd(const struct agents *agents); /* for epoll: readable when there is something to do */
void agents_turn(struct agents *agents, uint64_t now_ns);

/* The same for one process, which has become another program: whose agent comes, is known, and what
 * the program before wrote is read. There may be thousands of others, and as many in a second. */
void agents_turn_of(struct agents *agents, pid_t pid, uint64_t now_ns);

void agents_gone(struct agents *agents, pid_t pid);

/* Tells all to leave. Call agents_turn until agents_stopped, or until you give up: agents that
 * found no safe point say AGENT_ENDING, and leave by themselves. */
void agents_stop(struct agents *agents);
bool agents_stopped(const struct agents *agents);

/* Whether one is on its way, or has not said yet how it is. */
bool agents_any_begins(const struct agents *agents);

/* Gives up waiting. For each agent that has not left, a notice says when it will. */
void agents_abandon(struct agents *agents);

/*
 * Requests to the agent of a process, in this order; after AGENT_PROBES_READY and until
 * AGENT_PROBES_ENDED. Each returns a number above 0, under which its answer comes, or a negative
 * errno: -ESRCH (there is none that is ready), -EINVAL, -ENOBUFS (too many wait). One that is not
 * answered within 10 s is answered by -ETIMEDOUT; what it asked for may happen later all the same.
 */

/* `bytes` of code, for as long as the process lives, which nothing else ever had. All of it is at
 * most AGENT_REACH from `near`: choose the middle of what it refers to. */
int agents_probes_area(struct agents *agents, pid_t pid, uint64_t near, uint32_t bytes);

/*
 * Slots, all or none; each once. What a thunk goes on with must lie in an area of the process, and
 * be written before anything leads to the thunk. A slot of an earlier session can be set if it goes
 * on where it did. The list is copied.
 */
int agents_probes_set(struct agents *agents, pid_t pid, const struct agent_slot *slots, size_t n);

/* When it is answered, each call that enters its thunk from then on is treated so. */
int agents_probes_turn(struct agents *agents, pid_t pid, uint32_t first, uint32_t n,
                       enum agent_slot_does does);

/* How many calls of a slot were counted so far (AGENT_SLOT_COUNT), as the agent says: any number,
 * so to be compared with what can be. False: nobody knows any more. From AGENT_PROBES_READY on, and
 * for the last time when AGENT_PROBES_ENDED is told. */
bool agents_probes_counted(const struct agents *agents, pid_t pid, uint32_t slot, uint64_t *calls);

/*
 * How many calls children of fork have made, by slot, as they and their parent say. The memory is
 * the caller's until agents_probes_children_free, whatever becomes of the process. NULL: no memory.
 */
const uint64_t *agents_probes_children(const struct agents *agents, pid_t pid);
void agents_probes_children_free(const uint64_t *children);

/* One that waits in cuInit goes on. */
void agents_probes_go(struct agents *agents, pid_t pid);

/* Where kernels' handles have the pointer to their name (bpf/calls.h); for all agents, also those
 * to come. */
void agents_probes_names(struct agents *agents, uint64_t offset);

/* How far the agent of a process is on its way to AGENT_PROBES_READY; static. */
const char *agents_stage(const struct agents *agents, pid_t pid);

/*
 * Sums over all agents that ever were. Each number of one counts for AGENT_LOST_MOST at most: else
 * one process could make a sum begin at 0 again, and hide what others lost.
 */
#define AGENT_LOST_MOST (1ull << 36) /* a million a second for 19 hours */
struct agents_lost {
	uint64_t ring, buffers, times, ranges;
	uint64_t turned_away; /* processes there was no room for, but the first, which is named */
	uint64_t probes[AGENT_PROBE_LOSTS];
};
void agents_lost(const struct agents *agents, struct agents_lost *lost);
