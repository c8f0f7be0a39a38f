// SPDX-License-Identifier: MIT
#include "capture/capture.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/later.h"
#include "base/xalloc.h"
#include "bpf/wire_fold.h"
#include "capture/session.h"
#include "probe/frozen.h"
#include "probe/person.h"

_Static_assert(BUDGET_UNKNOWN == PERSON_UNKNOWN, "whose nobody knows");

/* Of what targets make us keep: names, handles, stacks; see docs/bounds.md for the rest. */
#define BUDGET_EACH ((size_t)8 << 20)
#define BUDGET_ALL  ((size_t)24 << 20)

#define PATIENT_NS 2000000000 /* for agents to come, and tell of launches */
#define UNHOOK_NS  500000000  /* as long as is waited for probes to be taken away at the end */

/* ---- opening: from nothing to hooked ------------------------------------------------------- */

static void launched(void *data, uint32_t pid, const struct call *call)
{
	struct capture *c = data;

	if (c->gpu)
		gpu_launched(c->gpu, pid, call);
}

static void met(void *data, const struct process *process, uint64_t now_ns)
{
	struct capture *c = data;

	if (c->who)
		who_feed_process(c->who, process, now_ns);
	if (c->ranks)
		ranks_feed_process(c->ranks, process);
}

static void hooked(void *data, uint32_t pid, const struct call *call)
{
	ranks_feed_call(((struct capture *)data)->ranks, pid, call);
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
	if (!c->inside || !call->result || !inside_tells_refused(c->inside, call))
		runtime_launches_called(c->runtime_launches, call);
	if ((!c->inside || !(call->head.flags & WIRE_BY_AGENT)) &&
	    runtime_launches_overlook(c->runtime_launches, call) &&
	    !(c->inside && inside_tells_refused(c->inside, call)))
		runtime_launches_overlooked(c->runtime_launches);
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
		                           .returns = c->options.returns,
		                           .keeps_off = session_keeps_off,
		                           .data = c };
	struct pipeline_options stream = { .state = programs_state(c->programs),
		                           .consumers = c->options.consumers,
		                           .n_consumers = c->options.n_consumers,
		                           .hit = capture_hit,
		                           .stack_of = stack_of,
		                           .stack_of_hook = stack_of_hook,
		                           .launched = launched,
		                           .met = c->who || c->ranks ? met : NULL,
		                           .hooked = c->ranks ? hooked : NULL,
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
	budget_of_persons(c->budget, helper_person_of_owner);
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

bool capture_walks(const struct capture_stacks *asked)
{
	return asked && (!asked->host_waits || asked->blocked || asked->sample_ns || asked->calls);
}

static int open_stacks(struct capture *c, struct err *err)
{
	struct sampler_options options = { .programs = c->programs, .pipeline = c->pipeline };
	const struct capture_stacks *asked = c->options.stacks;
	int r;

	if (!asked)
		return 0;
	options.blocked = asked->blocked || asked->host_waits;
	options.walks = capture_walks(asked);
	options.nodes = c->options.gpu != NULL;
	options.agents = c->inside != NULL;
	options.lines = !c->options.watch; /* of native code a page names functions alone */
	options.renews = c->options.watch && c->options.watch->forget;
	options.cuda_only = c->cuda_only;
	r = sampler_new(&options, &c->sampler, err);
	if (!r && options.renews)
		watcher_renews(c->watcher, c->sampler);
	return r;
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

void session_notice(void *data, const char *text)
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
		.notice = session_notice,
		.data = c,
	};

	c->driver_events = driver_events_new(&options);
	driver_events_turn(c->driver_events, capture_now_ns());
}

/* What the run tells of itself, as far as it is known before anything is hooked. */
static void begin_run(struct capture *c)
{
	const struct capture_options *options = &c->options;

	c->unanswered_before = helper_unanswered();
	c->run.returns = options->returns;
	c->run.chosen = options->chosen;
	c->run.estimate_scale = 1;
	if (options->metrics_ns || options->stretches_ns)
		c->metrics = metrics_feed_new(options->metrics_ns, options->stretches_ns);
	if (options->who)
		c->who = who_feed_new(options->target.kind == TARGET_COMMAND, options->who_newest);
	if (options->ras)
		c->ranks = ranks_feed_new();
	c->host = host_new(options->target.kind == TARGET_COMMAND ? options->target.command.argv
	                                                          : NULL);
	host_describe(c->host, &c->run);
}

static int open_programs(struct capture *c, struct err *err)
{
	int r = kernel_features_new(c->options.without, &c->features, err);

	if (!r)
		r = session_load_programs(c, err);
	if (r)
		return r;
	make_parts(c);
	capture_begin_clock(c);
	return session_open_agents(c, err);
}

static int open_sources(struct capture *c, struct err *err)
{
	bool kernel = c->options.kernel && !c->options.watch;
	int r = open_stacks(c, err);

	if (!r)
		session_open_wakers(c);
	if (!r && kernel)
		r = driver_calls_new(c->programs, c->pipeline, &c->driver_calls, err);
	if (!r && kernel)
		open_driver_events(c);
	if (!r)
		r = session_expect_libraries(c, err);
	if (!r)
		session_hook_kernel(c);
	return r;
}

static int open_all(struct capture *c, struct err *err)
{
	int r = session_hold_back_end(&c->options, err);

	if (!r)
		r = open_programs(c, err);
	if (!r)
		r = open_sources(c, err);
	if (!r)
		r = check_end(err);
	if (!r)
		r = session_open_targets(c, err);
	return r ? r : check_end(err);
}

int capture_open(const struct capture_options *options, struct capture **capture, struct err *err)
{
	struct capture *c = xcalloc(1, sizeof(*c));
	int r;

	c->options = *options;
	if (options->watch)
		c->options.stacks = stacks_of_watch(options->watch);
	r = helper_begin(err); /* first: what it is forked from is to be small */
	if (!r)
		r = frozen_watch(err);
	if (!r)
		r = open_inside(c, err);
	if (r) {
		free(c);
		return r;
	}
	begin_run(c);
	r = open_all(c, err);
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
	if (c->sampler)
		sampler_unhook(c->sampler);
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

/* By signals, which the command gets then: they end nothing of cuscope's. Who has sent two while
 * the trace ended does not wait for a command that heeds none. */
static int wait_for_command(struct capture *c)
{
	struct err unsaid = { 0 };
	int status;

	last_resort_end();
	if (c->signalled > 1) {
		session_hold_back_end(&c->options, &unsaid);
		return -c->last_signal;
	}
	status = hold_wait(c->hold, !c->stopping);
	session_hold_back_end(&c->options, &unsaid);
	return status;
}

uint32_t capture_function_number(struct capture *c)
{
	return pipeline_function_number(c->pipeline);
}

int capture_tell(struct capture *c, const struct event *event, struct err *err)
{
	return pipeline_pass(c->pipeline, event, err);
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
		if (c->signalled < 2)
			capture_notice(
				c, "the %s is over; waiting for the command (process %d) to end",
				c->options.taken ? c->options.taken : "trace", c->command_pid);
		status = wait_for_command(c);
	}
	if (status < 0) {
		capture_notice(c, "process %d is left running", c->command_pid);
		return 128 - status;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A perf event each, or so many processes that the kernel takes long for each probe. */
static bool unhooks_slowly(struct capture *c)
{
	uint64_t ns = 0;

	if (programs_mechanism(c->programs) >= MECHANISM_SINGLE)
		return true;
	if (c->reader_hangs) /* with the lock, maybe */
		return false;
	for (size_t i = 0; c->modules && i < modules_count(c->modules); i++)
		ns += module_attach_ns(modules_at(c->modules, i));
	return ns > UNHOOK_NS;
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
	c->sampler = NULL;
	wakers_free(c->wakers);
	pipeline_free(c->pipeline);
	correlate_free(c->correlate);
	budget_free(c->budget);
	if (c->programs && unhooks_slowly(c)) {
		memset(programs_state(c->programs)->mode, HOOK_IGNORE, WIRE_HOOKS_MAX);
		close_events_at_leisure();
	}
	unhook(c);
	if (!c->reader_hangs)
		kernel_features_free(c->features);
	metrics_feed_free(c->metrics);
	who_feed_free(c->who);
	ranks_feed_free(c->ranks);
	gpus_free(c->gpus);
	host_free(c->host);
	free(c->target_pids);
	free(c->ended_pids);
	free(c->told_seccomp.pids);
	free(c->told_valgrind.pids);
	free(c->told_foreign.pids);
	if (!c->reader_hangs)
		free(c);
}
