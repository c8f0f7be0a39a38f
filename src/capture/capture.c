// SPDX-License-Identifier: MIT
#include "capture/capture.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/later.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "bpf/wire_fold.h"
#include "capture/session.h"

/* Of what targets make us keep: names, handles, stacks; see docs/design.md for the rest. */
#define BUDGET_EACH ((size_t)8 << 20)
#define BUDGET_ALL  ((size_t)24 << 20)

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
	capture_notice(
		c, "only entries are hooked, so there are no durations and results: this kernel's "
		   "return probes kill processes under seccomp, and cannot be left out for those "
		   "alone; newer stable releases of this kernel are free of that");
}

static int set_name(struct capture *c, struct err *err)
{
	struct wire_glob glob;
	int r = target_glob(&c->options.target, &glob, err);

	if (r)
		return r;
	r = programs_name_set(c->programs, &glob);
	return r ? err_set(err, r, "--name: telling the eBPF programs: %s", strerror(-r)) : 0;
}

/* The number of the cgroup that is asked for, by which the programs know it. */
static int find_cgroup(struct capture *c, __u64 *id, struct err *err)
{
	int folder = target_cgroup_open(&c->options.target, err), r = 0;
	struct stat st;

	if (folder < 0)
		return folder;
	if (fstat(folder, &st))
		r = err_set(err, errno, "--cgroup: %s", strerror(errno));
	*id = r ? 0 : st.st_ino;
	close(folder);
	return r;
}

/* Where there is none, numbers of stacks can be foretold, and nothing else is lost. */
static uint64_t chance(void)
{
	uint64_t number = 0;

	return getrandom(&number, sizeof(number), GRND_NONBLOCK) == sizeof(number)
	               ? number
	               : 0x9e3779b97f4a7c15ull;
}

/* The programs' kinds of calls: those who wait in a copy ask for it under both names. */
uint8_t capture_stack_kinds(uint32_t calls)
{
	uint8_t kinds = 0;

	if (calls & STACK_CALLS_LAUNCHES)
		kinds |= 1 << STACK_OF_LAUNCH;
	if (calls & STACK_CALLS_COPIES)
		kinds |= 1 << STACK_OF_COPY | 1 << STACK_OF_WAITING_COPY;
	if (calls & STACK_CALLS_WAITS)
		kinds |= 1 << STACK_OF_WAIT | 1 << STACK_OF_WAITING_COPY;
	if (calls & STACK_CALLS_ALLOCATIONS)
		kinds |= 1 << STACK_OF_ALLOCATION | 1 << STACK_OF_FREE;
	if (calls & STACK_CALLS_HOOKS)
		kinds |= 1 << STACK_OF_HOOK;
	return kinds;
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
			.name = o->target.kind == TARGET_NAME,
			.follow = o->target.follow,
			.inside = c->inside != NULL,
			.driver_calls = o->kernel && !o->watch,
		},
	};
	int64_t offset_ns;
	int r = 0;

	if (kernel_refuses(
		    c->features)) /* without rights, every feature would seem to be missing */
		return err_set(err, EPERM, PROGRAMS_REFUSED);
	if (!kernel_has(c->features, FEATURE_PIDS))
		return err_set(
			err, ENOTSUP,
			"cuscope runs in a pid namespace of its own (a container?), while the "
			"kernel reports the host's process ids: run it on the host, or start "
			"the container with --pid=host");
	if (!process_clock_offset(getpid(), &offset_ns) || offset_ns)
		return err_set(err, ENOTSUP,
		               "cuscope runs in a time namespace, whose clock is not the one that "
		               "the kernel reports times by: run it outside of that");
	if (!kernel_has(c->features, FEATURE_BTF))
		return err_set(
			err, ENOTSUP,
			"this kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF), "
			"which the eBPF programs need; 'cuscope doctor' tells more");
	options.mechanism = mechanism_best(c->features);
	if ((options.mechanism == MECHANISM_SINGLE || options.mechanism == MECHANISM_STUB) &&
	    kernel_lacks_because(c->features, FEATURE_UPROBE) == -EACCES)
		return err_set(
			err, EPERM,
			"no function can be hooked: without links for a file's functions (Linux "
			"6.6) this kernel wants CAP_SYS_ADMIN for that, which cuscope has not "
			"('cuscope doctor' tells more; docs/install.md has the agent's unit)");
	check_returns(c, options.mechanism);
	options.settings.returns = c->options.returns;
	options.settings.seccomp_entry_only = !c->seccomp_safe;
	if (o->stacks) {
		options.stacks = true;
		options.settings.sample_ns = o->stacks->sample_ns;
		options.settings.stack_seed = chance();
		options.settings.call_stacks = capture_stack_kinds(o->stacks->calls);
		options.settings.call_stack_one_in = o->stacks->one_in;
		options.settings.call_stack_ns = o->stacks->call_ns;
		options.settings.blocked = o->stacks->blocked || o->stacks->host_waits;
		options.settings.walk_blocked = o->stacks->blocked;
		options.settings.host_waits = o->stacks->host_waits;
		options.settings.blocked_ns = o->stacks->blocked_ns;
	}
	if (o->watch) {
		c->cuda_only = o->target.kind == TARGET_ALL && !c->inside && !o->selection.hooks;
		options.settings.fold = c->options.selection.fold = o->watch->tools;
		options.settings.stacks = o->watch->stacks;
		options.settings.cuda_only = c->cuda_only;
	}
	options.own_hooks = own_hooks_kinds(o->selection.hooks);
	if (o->target.kind == TARGET_CGROUP)
		r = find_cgroup(c, &options.settings.cgroup_id, err);
	if (!r)
		r = programs_load(&options, &c->programs, err);
	if (r)
		return r;
	programs_state(c->programs)->name_offset = KERNEL_HANDLE_NAME_OFFSET;
	if (o->target.kind == TARGET_NAME)
		r = set_name(c, err);
	if (r)
		return r;
	r = programs_follow_processes(c->programs, &c->mmap_seen, err);
	if (!r && c->mmap_seen && !kernel_has(c->features, FEATURE_TRACEFS)) { /* --without */
		programs_stop_holding(c->programs);
		c->mmap_seen = false;
	}
	return r;
}

static void launched(void *data, uint32_t pid, const struct call *call)
{
	struct capture *c = data;

	if (c->gpu)
		gpu_launched(c->gpu, pid, call);
}

static void met(void *data, const struct process *process, uint64_t now_ns)
{
	struct capture *c = data;

	who_feed_process(c->who, process, now_ns);
}

static const struct stack *stack_of(void *data, uint32_t tid, uint64_t begin_ns)
{
	struct capture *c = data;

	return c->sampler ? sampler_call_stack(c->sampler, tid, begin_ns) : NULL;
}

static const struct stack *stack_of_hook(void *data, uint32_t tgid, uint64_t id)
{
	struct capture *c = data;

	return c->sampler ? sampler_numbered_stack(c->sampler, tgid, id) : NULL;
}

void capture_hit(void *data, const struct wire_call *call)
{
	struct capture *c = data;

	if (!(call->head.flags & WIRE_BY_AGENT)) /* it cost no hit */
		governor_hit(c->governor, call);
	else if (c->inside)
		governor_told(c->governor, call, inside_meets_probe(c->inside, call));
	runtime_launches_called(c->runtime_launches, call);
	if (c->n_joined && session_is_joined(c, (pid_t)call->head.tgid))
		return; /* nobody asked for it to be entered */
	if (c->gpu)
		gpu_called(c->gpu, call);
	if (c->inside)
		inside_called(c->inside, call);
}

static void lost_inside(void *data, uint64_t lost[])
{
	const struct capture *c = data;

	if (c->inside)
		inside_fill_lost(c->inside, lost);
}

static void tell_of_capture(void *data, struct watch_page *page)
{
	const struct capture *c = data;
	struct sampler_figures figures;
	struct modules_figures modules;

	page->turns_cut = c->turns_cut;
	modules_figures(c->modules, &modules);
	page->hooked_files = modules.modules;
	page->let_go_files = modules.let_go;
	page->refused_files = modules.refused;
	page->bypassed_files = foreign_jumps_found(c->foreign_jumps);
	if (capture_stack_figures(c, &figures))
		page->code_bytes = figures.unwinder.code.bytes;
}

/* The hits on cuscope itself are nobody's calls, and those that a small ring lost no loss. */
static void discard_records(struct programs *programs)
{
	struct wire_state *state = programs_state(programs);
	struct rings *rings = programs_rings(programs);
	size_t bytes;

	for (size_t i = 0; i < rings_count(rings); i++) {
		while (ring_peek(rings_at(rings, i), &bytes))
			ring_advance(rings_at(rings, i));
	}
	memset(state->lost, 0, sizeof(state->lost));
}

static size_t kept_most(const struct capture_options *options)
{
	return options->ring_bytes && options->ring_bytes < RINGS_KEPT_MOST ? options->ring_bytes
	                                                                    : RINGS_KEPT_MOST;
}

static void make_parts(struct capture *c)
{
	struct modules_options modules = { .programs = c->programs,
		                           .selection = &c->options.selection,
		                           .returns = c->options.returns };
	struct pipeline_options stream = { .state = programs_state(c->programs),
		                           .consumers = c->options.consumers,
		                           .n_consumers = c->options.n_consumers,
		                           .hit = capture_hit,
		                           .stack_of = stack_of,
		                           .stack_of_hook = stack_of_hook,
		                           .launched = launched,
		                           .met = c->who ? met : NULL,
		                           .data = c };
	struct governor_options governor = { .programs = c->programs,
		                             .max_percent = c->options.max_overhead,
		                             .returns = c->options.returns };

	if (!c->options.watch && !c->options.selection.none) {
		cost_measure(c->programs, c->options.returns, &governor.cost, NULL);
		discard_records(c->programs);
	}
	c->options.selection.agents = session_agents_may_tell(c);
	if (c->options.selection.hooks)
		c->own = own_hooks_new(c->options.selection.hooks, c->programs, c->options.returns);
	modules.own = stream.own = c->own;
	modules.lets_go =
		c->options.target.kind == TARGET_ALL && !c->own && !c->inside && !c->options.gpu;
	c->modules = modules_new(&modules);
	if (!c->mmap_seen)
		modules_miss(c->modules, MISS_UNSEEN, NULL, NULL, 0, "%s", SESSION_MAPS_UNSEEN);
	if (c->options.gpu)
		stream.correlate = c->correlate = correlate_new();
	stream.modules = governor.modules = c->modules;
	c->budget = stream.budget = budget_new(BUDGET_EACH, BUDGET_ALL);
	c->pipeline = pipeline_new(&stream);
	if (c->options.watch) {
		const struct watcher_options watcher = { .watch = c->options.watch,
			                                 .budget = c->budget,
			                                 .programs = c->programs,
			                                 .modules = c->modules,
			                                 .pipeline = c->pipeline,
			                                 .inside = c->inside != NULL,
			                                 .lost = lost_inside,
			                                 .of_capture = tell_of_capture,
			                                 .data = c };

		c->watcher = watcher_new(&watcher);
	}
	if (c->options.selection.agents) /* the probes that cost most are about to go */
		governor.patient_ns = capture_now_ns() + PATIENT_NS;
	if (c->inside)
		governor.patient_ns = governor.getters_ns = capture_now_ns() + PATIENT_NS;
	c->governor = governor_new(&governor, capture_now_ns());
	c->runtime_launches = runtime_launches_new(
		&(struct runtime_launches_options){ .modules = c->modules,
	                                            .programs = c->programs,
	                                            .selection = &c->options.selection,
	                                            .returns = c->options.returns });
	c->foreign_jumps = foreign_jumps_new(c->modules, c->programs, &c->begin_ns);
	c->order = order_new(capture_record, c);
	c->rings = programs_rings(c->programs);
	if (!c->options.watch) /* whose calls are added up, and not sent */
		rings_watch(c->rings, kept_most(&c->options));
}

/* Live memory is told with the stacks that made it. */
static const struct capture_stacks *stacks_of_watch(const struct watch_options *watch)
{
	static const struct capture_stacks of_allocations;

	return watch && watch->stacks && watch->tools & WATCH_MEMORY ? &of_allocations : NULL;
}

static int open_stacks(struct capture *c, struct err *err)
{
	struct sampler_options options = { .programs = c->programs, .pipeline = c->pipeline };
	const struct capture_stacks *asked = c->options.stacks;

	if (!asked)
		return 0;
	options.blocked = asked->blocked || asked->host_waits;
	options.walks = !asked->host_waits || asked->blocked || asked->sample_ns || asked->calls;
	options.cuda_only = c->cuda_only;
	if (c->options.join_wakers && options.blocked) {
		c->wakers = wakers_new();
		options.woken = session_woken;
		options.data = c;
	}
	return sampler_new(&options, &c->sampler, err);
}

_Static_assert(WATCH_MEMORY == (int)FOLD_TOOL_MEMORY && WATCH_LAUNCHES == (int)FOLD_TOOL_LAUNCHES &&
                       WATCH_COPIES == (int)FOLD_TOOL_COPIES &&
                       WATCH_RESULTS == (int)FOLD_TOOL_RESULTS &&
                       WATCH_NO_KERNELS == (int)FOLD_TOOL_NO_KERNELS &&
                       WATCH_HOOKS == (int)FOLD_TOOL_HOOKS,
               "the programs are told of tools by the same numbers");

/* Whether one came meanwhile. */
static int check_end(struct err *err)
{
	return last_resort_asked() ? err_set(err, EINTR, "ended before it had begun") : 0;
}

/* It ends cuscope now. */
static void let_end(const struct capture_options *options)
{
	sigset_t set;

	session_end_signals(options, &set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* What is given up for its cost is a matter of probes. */
static bool goes_inside_by_itself(const struct capture_options *options)
{
#ifdef __x86_64__
	return options->in_process == IN_PROCESS_WITH_GPU && options->gpu && options->returns &&
	       !options->max_overhead;
#else
	return false;
#endif
}

static int open_inside(struct capture *c, struct err *err)
{
	struct err unsaid = { 0 };

	c->inside_by_itself = goes_inside_by_itself(&c->options);
	if (c->options.in_process == IN_PROCESS_YES)
		return inside_new(&c->inside, err);
	if (c->inside_by_itself && inside_new(&c->inside, &unsaid))
		c->inside = NULL;
	return 0;
}

static void driver_notice(void *data, const char *text)
{
	capture_notice(data, "%s", text);
}

/* Functions of modules that are there are hooked before a command begins. */
static void open_driver_events(struct capture *c)
{
	const struct driver_events_options options = {
		.programs = c->programs,
		.pipeline = c->pipeline,
		.order = c->order,
		.begin_ns = &c->begin_ns,
		.all = c->options.target.kind == TARGET_ALL,
		.cgroup = c->options.target.kind == TARGET_CGROUP,
		.ring_bytes = c->options.ring_bytes,
		.notice = driver_notice,
		.data = c,
	};

	c->driver_events = driver_events_new(&options);
	driver_events_turn(c->driver_events, capture_now_ns());
}

int capture_open(const struct capture_options *options, struct capture **capture, struct err *err)
{
	struct capture *c = xcalloc(1, sizeof(*c));
	int r;

	c->options = *options;
	if (options->watch)
		c->options.stacks = stacks_of_watch(options->watch);
	r = helper_begin(err); /* first: what it is forked from is to be small */
	if (r) {
		free(c);
		return r;
	}
	r = open_inside(c, err);
	if (r) {
		free(c);
		return r;
	}
	c->unanswered_before = helper_unanswered();
	c->run.returns = options->returns;
	c->run.chosen = options->chosen;
	c->run.estimate_scale = 1;
	if (options->metrics_ns)
		c->metrics = metrics_feed_new(options->metrics_ns);
	if (options->who)
		c->who = who_feed_new(options->who_newest);
	c->host = host_new(options->target.kind == TARGET_COMMAND ? options->target.command.argv
	                                                          : NULL);
	host_describe(c->host, &c->run);
	r = session_hold_back_end(options, err);
	if (!r)
		r = kernel_features_new(options->without, &c->features, err);
	if (!r)
		r = load_programs(c, err);
	if (!r) {
		if (programs_mechanism(c->programs) >= MECHANISM_SINGLE)
			last_resort_at_leisure();
		make_parts(c);
		capture_begin_clock(c);
		r = session_open_agents(c, err);
	}
	if (!r)
		r = open_stacks(c, err);
	if (!r && options->kernel && !options->watch)
		r = driver_calls_new(c->programs, c->pipeline, &c->driver_calls, err);
	if (!r && c->options.kernel && !c->options.watch)
		open_driver_events(c);
	if (!r)
		r = session_expect_libraries(c, err);
	if (!r)
		session_hook_kernel(c);
	if (!r)
		r = check_end(err);
	if (!r)
		r = session_open_targets(c, err);
	if (!r)
		r = check_end(err);
	if (r) {
		capture_free(c);
		last_resort_end();
		let_end(options);
		return r;
	}
	*capture = c;
	return 0;
}

/* ---- closing ------------------------------------------------------------------------------- */

/* The command may run for long after the trace: it is to pay for nothing any more. */
static void unhook(struct capture *c)
{
	driver_events_free(c->driver_events);
	c->driver_events = NULL;
	own_kernel_free(c->own_kernel);
	c->own_kernel = NULL;
	inside_free(c->inside);
	gpu_free(c->gpu);
	driver_calls_free(c->driver_calls);
	c->driver_calls = NULL;
	if (!c->reader_hangs) { /* else all that is behind its look is its own, for good */
		modules_free(c->modules);
		own_hooks_free(c->own);
		programs_free(c->programs);
	}
	c->inside = NULL;
	c->gpu = NULL;
	c->modules = NULL;
	c->own = NULL;
	c->programs = NULL;
}

/* By signals, which the command gets then: they end nothing of cuscope's. */
static int wait_for_command(struct capture *c)
{
	struct err unsaid = { 0 };
	int status;

	last_resort_end();
	status = hold_wait(c->hold, !c->stopping);
	session_hold_back_end(&c->options, &unsaid);
	return status;
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
		if (c->options.unhooked)
			c->options.unhooked(c->options.data);
		capture_notice(c, "the %s is over; waiting for the command (process %d) to end",
		               c->options.taken ? c->options.taken : "trace", c->command_pid);
		status = wait_for_command(c);
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
	runtime_launches_free(c->runtime_launches);
	foreign_jumps_free(c->foreign_jumps);
	order_free(c->order);
	watcher_free(c->watcher);
	inside_free(c->inside);
	c->inside = NULL;
	gpu_free(c->gpu);
	c->gpu = NULL;
	sampler_free(c->sampler);
	wakers_free(c->wakers);
	pipeline_free(c->pipeline);
	correlate_free(c->correlate);
	budget_free(c->budget);
	if (c->programs && programs_mechanism(c->programs) >= MECHANISM_SINGLE) {
		memset(programs_state(c->programs)->mode, HOOK_IGNORE, WIRE_HOOKS_MAX);
		close_events_at_leisure();
	}
	unhook(c);
	if (!c->reader_hangs)
		kernel_features_free(c->features);
	metrics_feed_free(c->metrics);
	who_feed_free(c->who);
	gpus_free(c->gpus);
	host_free(c->host);
	free(c->target_pids);
	free(c->ended_pids);
	free(c->told_seccomp.pids);
	free(c->told_valgrind.pids);
	if (!c->reader_hangs)
		free(c);
}
