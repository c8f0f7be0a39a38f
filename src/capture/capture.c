// SPDX-License-Identifier: MIT
#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/wire.h"
#include "base/later.h"
#include "base/xalloc.h"
#include "bpf/wire_fold.h"
#include "capture/session.h"

#define PATIENT_NS 2000000000 /* for agents to come, and tell of launches */

/* ---- opening: from nothing to hooked ------------------------------------------------------- */

/*
 * Only a session declines the return of a single hit. With the other mechanisms a return probe is
 * there for every process that maps the file, also for those under seccomp, which it would kill.
 */
static void check_returns(struct capture *c, enum mechanism mechanism)
{
	c->seccomp_safe = !c->options.returns || kernel_has(c->features, FEATURE_SECCOMP_SAFE);
	if (c->seccomp_safe || mechanism == MECHANISM_SESSION)
		return;
	c->options.returns = c->run.returns = false;
	c->seccomp_safe = true;
	capture_notice(c, "this kernel's return probes kill processes under seccomp and cannot be "
	                  "left out for those alone: only entries are hooked (no durations and "
	                  "results); newer stable releases of this kernel are free of that");
}

static int load_programs(struct capture *c, struct err *err)
{
	const struct capture_options *o = &c->options;
	struct programs_options options = {
		.ring_bytes = o->ring_bytes,
		.settings = {
			.all = o->target.kind == TARGET_ALL,
			.cgroup = o->target.kind == TARGET_CGROUP,
			.nested_returns = o->nested_returns,
			.begin_records = o->begin_records,
			.every_exec = o->target.kind == TARGET_NAME,
		},
	};
	int r;

	if (!kernel_has(c->features, FEATURE_PIDS))
		return err_set(
			err, ENOTSUP,
			"cuscope runs in a pid namespace of its own (a container?), while the "
			"kernel reports the host's process ids: run it on the host, or start "
			"the container with --pid=host");
	if (!kernel_has(c->features, FEATURE_BTF))
		return err_set(
			err, ENOTSUP,
			"this kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF), "
			"which the eBPF programs need; 'cuscope doctor' tells more");
	options.mechanism = mechanism_best(c->features);
	check_returns(c, options.mechanism);
	options.settings.returns = c->options.returns;
	options.settings.seccomp_entry_only = !c->seccomp_safe;
	if (o->watch) {
		options.settings.fold = c->options.selection.fold = o->watch->tools;
		options.settings.stacks = o->watch->stacks;
	}
	r = programs_load(&options, &c->programs, err);
	if (r)
		return r;
	programs_state(c->programs)->name_offset = KERNEL_HANDLE_NAME_OFFSET;
	return programs_watch_processes(c->programs, &c->mmap_seen, err);
}

static void hit(void *data, const struct wire_call *call)
{
	struct capture *c = data;

	if (!(call->head.flags & WIRE_BY_AGENT)) /* it cost no hit */
		governor_hit(c->governor, call);
	if (c->gpu)
		gpu_called(c->gpu, call);
}

/* The hits on cuscope itself are nobody's calls, and those that a small ring lost no loss. */
static void discard_records(struct programs *programs)
{
	struct wire_state *state = programs_state(programs);
	size_t bytes;

	for (size_t i = 0; i < programs_rings(programs); i++) {
		while (ring_peek(programs_ring(programs, i), &bytes))
			ring_advance(programs_ring(programs, i));
	}
	memset(state->lost, 0, sizeof(state->lost));
}

/*
 * Whether agents may tell of launches instead of probes. Not where processes can begin unseen, nor
 * where agents pause, nor where more is wanted of a launch than its begin, end and arguments; and
 * only sessions leave the return of a launch alone whose entry was.
 */
static bool agents_may_tell(const struct capture *c)
{
	const struct capture_options *o = &c->options;

	return o->gpu && o->gpu->kinds & AGENT_WANT_KERNELS && !o->gpu->window_ns && o->returns &&
	       !o->begin_records && !o->max_overhead && !o->watch &&
	       (o->target.kind == TARGET_COMMAND || o->target.kind == TARGET_PIDS ||
	        o->target.kind == TARGET_NAME) &&
	       programs_mechanism(c->programs) == MECHANISM_SESSION;
}

static void make_parts(struct capture *c)
{
	const struct modules_options modules = { .programs = c->programs,
		                                 .selection = &c->options.selection,
		                                 .returns = c->options.returns };
	struct stream_options stream = { .state = programs_state(c->programs),
		                         .consumers = c->options.consumers,
		                         .n_consumers = c->options.n_consumers,
		                         .hit = hit,
		                         .data = c };
	struct governor_options governor = { .programs = c->programs,
		                             .max_percent = c->options.max_overhead,
		                             .returns = c->options.returns };

	if (!c->options.watch) {
		cost_measure(c->programs, c->options.returns, &governor.cost, NULL);
		discard_records(c->programs);
	}
	c->options.selection.agents = agents_may_tell(c);
	c->modules = modules_new(&modules);
	if (c->options.gpu)
		stream.correlate = c->correlate = correlate_new();
	stream.modules = governor.modules = c->modules;
	c->stream = stream_new(&stream);
	if (c->options.watch) {
		const struct watcher_options watcher = { .watch = c->options.watch,
			                                 .programs = c->programs,
			                                 .modules = c->modules,
			                                 .stream = c->stream };

		c->watcher = watcher_new(&watcher);
	}
	if (c->options.selection.agents) /* the probes that cost most are about to go */
		governor.patient_ns = capture_now_ns() + PATIENT_NS;
	c->governor = governor_new(&governor, capture_now_ns());
	c->order = order_new(capture_record, c);
	for (size_t i = 0; i < programs_rings(c->programs); i++)
		c->rings[i] = programs_ring(c->programs, i);
}

static void gpu_notice(void *data, const char *text)
{
	capture_notice(data, "%s", text);
}

/* Its failures are not the capture's, but for an option that cannot be followed. */
static int open_gpu(struct capture *c, struct err *err)
{
	const struct gpu_options options = { .settings = c->options.gpu,
		                             .target = c->options.target.kind,
		                             .follow = c->options.target.follow,
		                             .stream = c->stream,
		                             .modules = c->modules,
		                             .programs = c->programs,
		                             .correlate = c->correlate,
		                             .launches = c->options.selection.agents,
		                             .ring_bytes = c->options.ring_bytes,
		                             .notice = gpu_notice,
		                             .data = c };
	struct order_source source;
	int r;

	if (!c->options.gpu)
		return 0;
	r = gpu_open(&options, &c->gpu, err);
	if (r)
		return r;
	source = gpu_source(c->gpu);
	order_add_source(c->order, &source);
	gpu_begin(c->gpu, c->begin_ns, 0, false);
	return 0;
}

/* The agent of a command comes with its environment. */
static void prepare_environment(struct capture *c, struct command *command)
{
	struct err err = { 0 };

	if (!c->gpu || !gpu_environment(c->gpu, &command->environment, &err))
		return;
	command->environment = NULL;
	capture_notice(c, "no GPU times: %s", err.text);
	modules_miss(c->modules, MISS_GPU_TIMES, NULL, NULL, 0, "%s", err.text);
}

_Static_assert(WATCH_MEMORY == (int)FOLD_TOOL_MEMORY && WATCH_LAUNCHES == (int)FOLD_TOOL_LAUNCHES &&
                       WATCH_COPIES == (int)FOLD_TOOL_COPIES,
               "the programs are told of tools by the same numbers");

/* Runs on the holding thread while a thread of the command waits. */
static void look_held(void *data, pid_t pid)
{
	struct capture *c = data;
	struct look_result found = { 0 };

	if (modules_look(c->modules, pid, LOOK_HELD, 0, &found, NULL) == 0 && found.modules)
		capture_found(c, pid);
}

static int open_command(struct capture *c, struct err *err)
{
	struct command *command = &c->options.target.command;
	uint32_t flags = c->options.target.follow ? TARGET_FOLLOW : 0;
	int r;

	command->follow = c->options.target.follow;
	/* without mmap events a hold has nothing to be told by */
	command->hold = command->hold && c->mmap_seen;
	prepare_environment(c, command);
	r = hold_prepare(command, look_held, c, &c->hold, &c->command_pid, &c->held, err);
	if (r)
		return r;
	if (command->hold && !c->held)
		capture_notice(c,
		               "ptrace is refused, so the command is not held while libraries are "
		               "hooked: first calls may be missed");
	return programs_target_add(c->programs, c->command_pid,
	                           flags | (c->held ? TARGET_HOLD : 0));
}

static int open_targets(struct capture *c, struct err *err)
{
	int folder, r;

	if (c->options.target.kind == TARGET_COMMAND)
		return open_command(c, err);
	if (c->options.target.kind == TARGET_CGROUP) {
		folder = target_cgroup_open(&c->options.target, err);
		if (folder < 0)
			return folder;
		r = programs_cgroup_set(c->programs, folder);
		close(folder);
		if (r)
			return err_set(err, r, "--cgroup: %s", strerror(-r));
	}
	return target_each(&c->options.target, capture_watch_running, c, err);
}

int capture_open(const struct capture_options *options, struct capture **capture, struct err *err)
{
	struct capture *c = xcalloc(1, sizeof(*c));
	int r;

	c->options = *options;
	c->run.returns = options->returns;
	c->run.estimate_scale = 1;
	c->host = host_new(options->target.kind == TARGET_COMMAND ? options->target.command.argv
	                                                          : NULL);
	host_describe(c->host, &c->run);
	r = kernel_features_new(options->without, &c->features, err);
	if (!r)
		r = load_programs(c, err);
	if (!r) {
		make_parts(c);
		capture_begin_clock(c);
		r = open_gpu(c, err);
	}
	if (!r)
		r = open_targets(c, err);
	if (r) {
		capture_free(c);
		return r;
	}
	*capture = c;
	return 0;
}

/* ---- closing ------------------------------------------------------------------------------- */

/* The command may run for long after the trace: it is to pay for nothing any more. */
static void unhook(struct capture *c)
{
	gpu_free(c->gpu);
	modules_free(c->modules);
	programs_free(c->programs);
	c->gpu = NULL;
	c->modules = NULL;
	c->programs = NULL;
}

int capture_finish(struct capture *c)
{
	int status;

	if (!c->hold || !hold_gone(c->hold)) /* it never began: hold_free ends it */
		return 0;
	programs_stop_holding(c->programs);
	hold_release(c->hold); /* first: its thread looks at modules */
	if (!hold_ended(c->hold, &status)) {
		unhook(c); /* what runs on is to run as fast as before */
		capture_notice(c, "the trace is over; waiting for the command (process %d) to end",
		               c->command_pid);
		status = hold_wait(c->hold, !c->stopping);
	}
	if (status < 0) {
		capture_notice(c, "process %d is left running", c->command_pid);
		return 128 - status;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	if (c->programs)
		programs_stop_holding(c->programs);
	hold_free(c->hold); /* before the modules: its thread looks at them */
	governor_free(c->governor);
	order_free(c->order);
	watcher_free(c->watcher);
	gpu_free(c->gpu);
	c->gpu = NULL;
	stream_free(c->stream);
	correlate_free(c->correlate);
	if (c->programs && programs_mechanism(c->programs) >= MECHANISM_SINGLE) {
		memset(programs_state(c->programs)->mode, HOOK_IGNORE, WIRE_HOOKS_MAX);
		close_events_at_leisure();
	}
	unhook(c);
	kernel_features_free(c->features);
	host_free(c->host);
	free(c->watched);
	free(c->told_seccomp);
	free(c);
}
