/* SPDX-License-Identifier: MIT */
/*
 * A live capture: targets, hooks, clock and order put together; feeds consumers.
 *
 *   capture_open     everything is loaded and hooked, a command waits before its first instruction
 *   capture_run      it runs until a signal, a limit or the target's end; consumers get their end
 *   capture_finish   a command that still runs is waited for; its exit status
 *   capture_free
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/target.h"
#include "capture/watch/watch.h"
#include "probe/selection.h"
#include "trace/event.h"

struct capture_state;
struct sampler_figures;

/* GPU times: which, and when. */
struct capture_gpu {
	uint32_t kinds;                /* enum agent_kind of agent/wire.h */
	uint64_t window_ns, period_ns; /* measure `window_ns` of every `period_ns`; 0: always */
	double window_percent;         /* windows as of struct agents_options; 0: none */
	const char *cupti;             /* the libcupti to use; NULL: it is looked for */
	bool if_any; /* nobody asked for them: where there are none is no failure */
};

/* Stacks: of samples of what threads do, and of calls. */
struct capture_stacks {
	uint64_t sample_ns;  /* between two samples of a CPU; 0: none are taken */
	uint32_t calls;      /* enum stack_calls */
	uint32_t one_in;     /* of one launch or copy in so many, by chance; 0, 1: of each */
	uint64_t call_ns;    /* between two of a thread, on average; 0: as they come */
	bool blocked;        /* how long threads are blocked, and where */
	uint64_t blocked_ns; /* shorter stretches are added up */
	bool host_waits;     /* what threads wait for, and how long for a CPU; with or without
	                        stacks. Shorter ones than blocked_ns are added up, too */
	bool if_any;         /* samples: where none can be taken that is no failure */
	bool wakers;         /* samples and blocked time of processes that targets wait for, too */
	bool bare_waits;     /* with host_waits: waits in system calls, but for disks, have stacks
	                        without the kernel's frames, at half the cost of a walk */
};

/* Whether calls are recorded inside of targets, where they can be. */
enum in_process {
	IN_PROCESS_WITH_GPU, /* if agents are there anyway; where not, nothing is said of it */
	IN_PROCESS_NO,
	IN_PROCESS_YES,
};

struct capture_options {
	struct target target;
	struct selection selection;
	bool returns;        /* durations and results */
	bool nested_returns; /* of nested calls too */
	bool begin_records;  /* EVENT_CALL_BEGIN */
	enum in_process in_process;
	double max_overhead;           /* percent; 0: the default, which gives up getters only */
	uint64_t duration_ns;          /* 0: no limit */
	uint64_t timeout_ns;           /* to wait for CUDA; 0: no limit */
	size_t ring_bytes;             /* 0: by the number of CPUs */
	const char *without;           /* kernel features not to use */
	const struct capture_gpu *gpu; /* NULL: no GPU times */
	bool kernel;                   /* system calls to the NVIDIA driver; not with */
				       /* `watch` */
	uint64_t metrics_ns;           /* between two samples of GPUs' metrics; 0: none */
	uint64_t stretches_ns;         /* the same of whether GPUs are busy: by the user's wish */
	bool ras;                      /* NCCL's RAS is asked which ranks processes are */
	bool who;                      /* who processes are is wanted, in run_info, */
	bool who_newest;               /* and of many rather of those that came last */
	bool metrics_asked;            /* by the user: who is told why there are none */
	const struct capture_stacks *stacks; /* NULL: none; not with `watch` */
	struct consumer *const *consumers;
	size_t n_consumers;
	const struct watch_options
		*watch;             /* calls are summed up in the kernel rather than passed */
				    /* to consumers; `selection` does not count then */
	const char *chosen;         /* as struct run_info has it */
	const char *taken;          /* what is over at the end: "profile"; NULL: "trace" */
	bool (*enough)(void *data); /* --max-events; may be NULL */
	bool patient; /* nobody waits for what is seen: a quarter of a second later does as well */
	bool (*ras_again)(void *data); /* whether RAS is to be asked anew now; NULL: no */
	uint64_t from_ns; /* duration_ns counts from then, of CLOCK_MONOTONIC, or later; 0: at once
	                   */
	/* Whether there is what duration_ns is to be of: it counts from then. NULL: there is. */
	bool (*begun)(void *data);
	void (*notice)(void *data, const char *text); /* a line for the user */
	/* Told a few dozen times a second, after consumers got what there was; may be NULL. */
	void (*progress)(void *data, const struct capture_state *state);
	/* SIGUSR2 came, or SIGUSR1: `run` is as it is now. NULL: a notice says that it is
	 * not for */
	/* this. */
	void (*snapshot)(void *data, const struct run_info *run);
	void (*summary)(void *data, const struct run_info *run);
	/* Of a command that goes on after the capture: nothing is hooked any more, and it is about
	 * to be waited for. May be NULL. */
	void (*unhooked)(void *data);
	/* SIGHUP came. NULL: it ends the capture. */
	void (*hangup)(void *data);
	void *data;
};

/* That much later than what they are of, GPU times come: they are waited for by a snapshot. */
#define CAPTURE_GPU_LATE_NS 3000000000ull

struct capture;

int capture_open(const struct capture_options *options, struct capture **capture, struct err *err);

/*
 * Blocks SIGINT, SIGTERM and SIGHUP and takes them as "enough". Returns 0, or what failed: then
 * consumers still got their end, and what they wrote is whole.
 */
int capture_run(struct capture *capture, struct err *err);

/* As SIGUSR2 does: options.snapshot() is called soon, or when GPU times until now have come. On the
 * thread of capture_run. */
void capture_ask_for_snapshot(struct capture *capture);

/* How a trace goes, for what shows it while it runs. */
struct capture_state {
	uint64_t lost[LOST_COUNT]; /* so far */
	double overhead_percent; /* tracing's cost over the last quarter of a second: a share of */
				 /* the busiest thread's time, estimated */
	double estimate_scale;   /* above 1: measured in windows, see struct run_info */
};

/* To be called by consumers and by enough(), so on the thread of capture_run. */
void capture_state(const struct capture *capture, struct capture_state *state);

/* How walking stacks goes; false where none are. On that thread, too, or after capture_run. */
bool capture_stack_figures(const struct capture *capture, struct sampler_figures *figures);

/* A call that a thread is in at this moment and that no other traced call made. */
struct capture_open_call {
	uint32_t pid, tid;
	const struct function *function;
	uint64_t begin_ns;
};

/* Also on that thread. Two system calls for each thread that is followed. */
void capture_open_calls(const struct capture *capture,
                        void (*each)(void *data, const struct capture_open_call *call), void *data);

/*
 * Calls that were counted inside of a process, and are no events (--all-calls), since this was
 * asked last. On that thread.
 */
void capture_counted_calls(const struct capture *capture,
                           void (*each)(void *data, uint32_t pid, const struct function *function,
                                        uint64_t calls),
                           void *data);

/*
 * Tells all consumers of a call that none of the capture's programs saw, in their order: of a
 * function of LAYER_HOOK with a number of capture_function_number(). On that thread, but not from
 * within a consumer.
 */
uint32_t capture_function_number(struct capture *capture);
int capture_tell(struct capture *capture, const struct event *event, struct err *err);

/* The status to exit with: a command's own (128 + signal), 0 for other targets. */
int capture_finish(struct capture *capture);

void capture_free(struct capture *capture);
