/* SPDX-License-Identifier: MIT */
/* The inside of a capture: shared by capture.c (opening, closing) and session*.c (running). */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/budget.h"
#include "capture/capture.h"
#include "capture/cost.h"
#include "capture/driver_calls.h"
#include "capture/driver_events.h"
#include "capture/file_reader.h"
#include "capture/foreign_jumps.h"
#include "capture/governor.h"
#include "capture/gpu/gpu.h"
#include "capture/host.h"
#include "capture/inside/inside.h"
#include "capture/last_resort.h"
#include "capture/metrics_feed.h"
#include "capture/ranks_feed.h"
#include "capture/who_feed.h"
#include "capture/order.h"
#include "capture/runtime_launches.h"
#include "capture/pipeline.h"
#include "capture/stacks/sampler.h"
#include "capture/stacks/wakers.h"
#include "capture/watch/watcher.h"
#include "cuda/kernel_name.h"
#include "probe/helper.h"
#include "probe/kernel_features.h"
#include "probe/modules.h"
#include "probe/own_kernel.h"
#include "probe/programs.h"

/* Processes that the user was told something of. */
struct told_processes {
	pid_t *pids;
	size_t n;
	bool more; /* that there are more of them */
};

struct capture {
	struct capture_options options;
	struct kernel_features *features;
	struct programs *programs;
	struct modules *modules;
	struct own_hooks *own;         /* of --hook; NULL: none */
	struct own_kernel *own_kernel; /* those of the kernel; NULL: none */
	uint64_t own_looked_ns;        /* when modules of the kernel were looked for last */
	struct file_reader *reader;    /* while the capture runs */
	bool reader_hangs;             /* and has modules and programs for good */
	struct pipeline *pipeline;
	struct budget *budget;       /* of what targets make it keep */
	struct correlate *correlate; /* these two: NULL without GPU times */
	struct gpu_times *gpu;
	struct inside *inside;             /* NULL: nothing is recorded inside of targets */
	bool inside_by_itself;             /* it was not asked for */
	bool agents_told;                  /* to leave */
	struct watcher *watcher;           /* NULL: calls go to consumers */
	struct sampler *sampler;           /* NULL: no stacks */
	struct wakers *wakers;             /* NULL: who wakes targets is not sampled */
	struct driver_calls *driver_calls; /* NULL: not asked for */
	struct governor *governor;
	struct runtime_launches *runtime_launches;
	struct foreign_jumps *foreign_jumps;
	struct order *order;
	struct host *host;
	struct driver_events *driver_events; /* with --kernel, else NULL */
	struct metrics_feed *metrics;        /* of GPUs; NULL: not asked for */
	struct who_feed *who;                /* NULL: not asked for */
	struct ranks_feed *ranks;            /* the same */
	uint64_t gpus_turn_ns;               /* when their users are looked at next */
	struct gpus *gpus; /* asked now and then; NULL: not yet, or nobody wants to know */
	struct rings *rings;
	struct run_info run;
	uint64_t begin_ns;
	uint64_t ready_ns;          /* all that can be hooked now is */
	uint64_t timed_ns;          /* from when on --duration counts; 0: not yet */
	uint64_t begun_ns;          /* when options.begun was true; 0: not yet */
	uint64_t unanswered_before; /* reads, of another capture */

	struct hold *hold; /* TARGET_COMMAND */
	bool held;         /* by ptrace: execs and mappings are looked at while it waits */
	pid_t command_pid;
	bool command_begun; /* it has executed its program, or is otherwise at work */
	bool command_ended;
	atomic_bool cuda_seen; /* a target has mapped a CUDA module */
	bool mmap_seen;        /* mappings are reported; else /proc is looked at */
	bool seccomp_safe;
	bool no_samples; /* none could be taken, and need not */
	bool cuda_only;  /* of processes without CUDA nothing is told: wire_settings */

	pid_t *target_pids; /* processes by pid or name that have not ended */
	size_t n_target_pids;
	size_t n_left_out; /* that were there at the begin, and had no room */
	pid_t *ended_pids; /* of those, whose end has not been told of yet */
	size_t n_ended_pids;
	struct told_processes told_seccomp;  /* that only entries are recorded of */
	struct told_processes told_foreign;  /* that run programs of another architecture */
	struct told_processes told_valgrind; /* that are left alone: under the modules' lock */
	bool told_waiting, told_not_begun;
	struct err failure;        /* of a record: what a consumer said */
	int epoll, timer, signals; /* signals: of last_resort */
	bool stopping;             /* a first signal came: a command gets a moment to end */
	uint64_t stop_at_ns;
	unsigned signalled;  /* how often */
	int last_signal;     /* of these */
	bool snapshot_asked; /* by SIGUSR2 */
	uint64_t snapshot_at_ns;
	bool summary_asked; /* by SIGUSR1 */
	uint64_t looked_ns, counted_ns, swept_ns;
	uint64_t turns_cut; /* that left records to the next, since they had taken their time */
};

uint64_t capture_now_ns(void);
/* Functions of the kernel and tracepoints of --hook; and those of modules that came since. */
void session_hook_kernel(struct capture *c);
void session_hook_kernel_again(struct capture *c, uint64_t now_ns);

/* Modules that nobody has mapped any more. */
void session_let_go(struct capture *c, uint64_t now);
/* What stacks were asked for, and what is missing in them so far. */
void capture_fill_stacks(const struct capture *capture, struct run_stacks *stacks);

/* Whether stacks are walked, and not times added up alone; of NULL not. */
bool capture_walks(const struct capture_stacks *asked);

/* A bit for each kind (enum wire_stack_kind) of calls whose stacks are walked. */
uint8_t capture_stack_kinds(uint32_t calls);
/* Samples and blocked time from now on; says which of it nobody will know. */
int capture_begin_stacks(struct capture *capture, struct err *err);
/* Who wakes targets is sampled, too, where that was asked for. */
void session_open_wakers(struct capture *capture);
/* Lines of the stacks that were found (stack/lines), and which files could not be read for them. */
void capture_take_lines(struct capture *capture);
/* Processes may end while their files are read, before the first sample. */
void capture_say_why_no_samples(struct capture *capture);
void capture_begin_clock(struct capture *capture); /* the trace begins now */
void capture_notice(struct capture *capture, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void session_notice(void *capture, const char *text); /* the same, for those who tell it back */

#define SESSION_MAPS_UNSEEN                                                                        \
	"this kernel does not report what processes map ('cuscope doctor': tracefs): libraries "   \
	"are found by looking at processes now and then, and those that live shorter are missed"

/* ---- agents (session_agents.c) -------------------------------------------------------------- */

bool session_agents_may_tell(const struct capture *c);

/* Their failures are not the capture's, but for an option that cannot be followed. */
int session_open_agents(struct capture *c, struct err *err);

/* The agent of a command comes with its environment. */
void session_environment(struct capture *c, struct command *command);

void session_begin_agents(struct capture *c);
void session_poll_agents(struct capture *c, void (*poll)(struct capture *c, int fd));
bool session_is_of_agents(const struct capture *c, int fd);
void session_runs(struct capture *c, pid_t pid); /* it ran before, and has the driver */

/* First in each turn: what agents tell of calls is to be there when those come. */
int session_turn_agents(struct capture *c, uint64_t now_ns, struct err *err);

/* The first call of a thread that an agent tells of: the thread, too. */
int session_meet_thread(struct capture *c, const struct wire_head *record);

/* Around a record: whether an agent told of it already, and what it means for agents. */
bool session_agents_told(struct capture *c, const struct wire_head *record);
int session_agents_before(struct capture *c, const struct wire_head *record);
void session_agents_after(struct capture *c, const struct wire_head *record);

/* The programs are loaded, and follow processes (session_programs.c). */
int session_load_programs(struct capture *c, struct err *err);

/*
 * What targets will map is hooked, as far as it is known. A command waits while its libraries are
 * hooked, and processes by number have theirs already.
 */
int session_expect_libraries(struct capture *c, struct err *err);

/* The command is begun, or those that run are found. */
int session_open_targets(struct capture *c, struct err *err);

/* Those that end a trace. */
/*
 * Signals are held back, and last_resort has them. One that ended cuscope while the kernel puts
 * probes into processes would leave them there for as long as the processes live ("failed to
 * unregister, leaking uprobe").
 */
int session_hold_back_end(const struct capture_options *options, struct err *err);
void session_end_signals(const struct capture_options *options, sigset_t *set);

void session_stop_agents(struct capture *c);
bool session_agents_stopped(struct capture *c); /* has the next step done, too */
/* What agents have written by now, for the last time; and when all of it was passed on. */
int session_read_rest_of_agents(struct capture *c);
int session_finish_agents(struct capture *c);

/* ---- the run (session_run.c) ---------------------------------------------------------------- */

/* Whether there is nothing more to wait for; `err`: where that is a failure (session_run.c). */
bool session_is_over(struct capture *c, uint64_t now, struct err *err);

void session_tell_given_up(struct capture *c);
void session_tell_over_budget(struct capture *c);
void session_ask_for_gpus(struct capture *c);
/* Metrics of GPUs that came since the last turn. */
int session_turn_metrics(struct capture *c, struct err *err);
/* What is known to be missed only when all was read. `failure`: by which the run ended, or NULL. */
void session_tell_end(struct capture *c, const struct err *failure);
void session_fill_run(struct capture *c);

/* Around the records of processes: how they change which processes are targets. */
void session_before_record(struct capture *c, const struct wire_head *record);
void session_look_again(struct capture *c, uint64_t now_ns);

/* For modules_options: a process under valgrind is to be left alone, which is told once. */
bool session_keeps_off(void *capture, pid_t pid);

/* One record, in order; for order_new. And a call of it; for pipeline_new. */
int capture_record(void *capture, const struct wire_head *record);
void capture_hit(void *capture, const struct wire_call *call);
