// SPDX-License-Identifier: MIT
#include "capture/session.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

/* ---- session hooks ------------------------------------------------------------------------- */

/* Of a session: hooks of the kernel that users asked for. */

#define LOOK_NS 1000000000ull /* for modules that are not loaded yet */

static void hooks_miss(void *data, enum miss_kind kind, const char *name, const char *why)
{
	struct capture *c = data;

	modules_lock(c->modules);
	modules_miss(c->modules, kind, name, "the kernel", 0, "%s", why);
	modules_unlock(c->modules);
}

void session_hook_kernel(struct capture *c)
{
	const unsigned kinds = OWN_HOOKS_KERNEL | OWN_HOOKS_TRACE;

	if (c->own && (own_hooks_kinds(c->options.selection.hooks) & kinds))
		c->own_kernel = own_kernel_new(c->own, hooks_miss, c);
}

void session_hook_kernel_again(struct capture *c, uint64_t now_ns)
{
	if (!c->own_kernel || now_ns - c->own_looked_ns < LOOK_NS)
		return;
	c->own_looked_ns = now_ns;
	own_kernel_look_again(c->own_kernel, hooks_miss, c);
}

/* ---- session ------------------------------------------------------------------------------- */

#define DRAIN_NS   20000000   /* how often the rings are read when nothing wakes us */
#define SLOW_NS    100000000  /* where no record is of a call: what is urgent wakes us */
#define PATIENT_NS 250000000  /* where nobody waits for them */
#define TURN_NS    100000000  /* records of a turn; pages and agents have their turn then */
#define SOON_NS    10000000   /* after a wake-up: what woke us becomes old enough to pass on */
#define SETTLE_NS  8000000    /* older records have all been submitted */
#define LEAVE_NS   2000000000 /* for agents, to leave the targets */
#define GRACE_NS   2000000000 /* for a command, between Ctrl-C and the end of the trace */

uint64_t capture_now_ns(void)
{
	return clock_of_ns(CLOCK_MONOTONIC);
}

/* CLOCK_BOOTTIME runs on while the machine sleeps. Read between two readings of the other clock, so
 * that a moment in which this thread did not run is not taken for sleep. */
static int64_t slept_ns(void)
{
	uint64_t before_ns, boot_ns, after_ns, best_ns = UINT64_MAX;
	int64_t sleep_ns = 0;

	for (int i = 0; i < 3; i++) {
		before_ns = clock_of_ns(CLOCK_MONOTONIC);
		boot_ns = clock_of_ns(CLOCK_BOOTTIME);
		after_ns = clock_of_ns(CLOCK_MONOTONIC);
		if (after_ns - before_ns >= best_ns)
			continue;
		best_ns = after_ns - before_ns;
		sleep_ns = (int64_t)(boot_ns - (before_ns + best_ns / 2));
	}
	/* less than the reading itself took: it never slept */
	return sleep_ns > (int64_t)best_ns ? sleep_ns : 0;
}

void capture_begin_clock(struct capture *c)
{
	c->begin_ns = c->run.begin_ns = capture_now_ns();
	c->run.realtime_offset_ns = (int64_t)(clock_of_ns(CLOCK_REALTIME) - c->begin_ns);
	c->run.boottime_offset_ns = slept_ns();
}

void capture_notice(struct capture *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (c->options.notice)
		c->options.notice(c->options.data, text);
}

/* ---- records -------------------------------------------------------------------------------- */

/* To the pipeline, with what belongs before and after the end of a program. */
static int to_stream(struct capture *c, const struct wire_head *record)
{
	int r = session_agents_before(c, record);

	if (!r)
		r = pipeline_record(c->pipeline, record, &c->failure);
	if (!r)
		session_agents_after(c, record);
	return r;
}

/* Without its stack what runs as this node is under the launch of its graph. */
static void tell_node(struct capture *c, const struct wire_node_stack *record)
{
	if (c->gpu && c->sampler)
		gpu_node_made(c->gpu, record->head.tgid, record->node,
		              record->stack ? sampler_stack_of_call(c->sampler, record->head.tgid,
		                                                    record->stack)
		                            : NULL);
}

static void tell_stack(struct capture *c, const struct wire_stack_entries *record)
{
	watcher_stack(c->watcher, record->head.tgid, record->id, sampler_stack(c->sampler, record));
}

/*
 * What agents record of calls comes by the million a second, and most of what is asked of other
 * records is not for these: no program sent them.
 */
static bool is_only_a_call(const struct capture *c, const struct wire_head *record)
{
	return record->type == WIRE_CALL && record->flags & WIRE_BY_AGENT && c->inside &&
	       inside_is_sure(c->inside) && !c->watcher && c->seccomp_safe;
}

/* Before it learns what it is nested in, and so loses its place. */
static void meet_walked(struct capture *c, const struct wire_head *record)
{
	if (record->type == WIRE_CALL && c->sampler &&
	    (record->flags & (WIRE_BY_AGENT | WIRE_WALKED)) == (WIRE_BY_AGENT | WIRE_WALKED))
		sampler_call_walked(c->sampler, (const struct wire_call *)record);
}

static int pass_call(struct capture *c, struct wire_call *call)
{
	int r = inside_nest(c->inside, call) ? 0 : session_meet_thread(c, &call->head);

	return r ? r : pipeline_record(c->pipeline, &call->head, &c->failure);
}

/* What is to become the command is a process of cuscope's until it executes that. On a busy machine
 * it is seen on a CPU before; it would be told of as another process, which ends then. Tools that
 * watch have no samples, and calls of hooks of the kernel that are its all the same. */
static bool is_before_command(struct capture *c, const struct wire_head *record)
{
	if (c->command_begun || c->watcher || !c->command_pid ||
	    record->tgid != (uint32_t)c->command_pid)
		return false;
	if (record->type == WIRE_SAMPLE || record->type == WIRE_BLOCKED ||
	    record->type == WIRE_THREAD)
		return true;
	c->command_begun = record->type != WIRE_STACK_ENTRIES;
	return false;
}

int capture_record(void *data, const struct wire_head *record)
{
	struct capture *c = data;
	int r;

	meet_walked(c, record);
	if (is_only_a_call(c, record))
		return pass_call(c, (struct wire_call *)record);
	if (is_before_command(c, record))
		return 0;
	if (record->type == WIRE_DRIVER_CALL) {
		if (c->driver_events)
			driver_events_call(c->driver_events,
			                   (const struct wire_driver_call *)record);
		return c->driver_calls ? driver_calls_record(c->driver_calls, record, &c->failure)
		                       : 0;
	}
	if (driver_events_is(record))
		return driver_events_record(c->driver_events, record, &c->failure);
	if (record->type == WIRE_NODE) {
		tell_node(c, (const struct wire_node_stack *)record);
		return 0;
	}
	if (session_agents_told(c, record))
		return 0;
	session_before_record(c, record);
	if (c->wakers)
		wakers_record(c->wakers, record);
	r = c->sampler ? sampler_record(c->sampler, record, &c->failure) : 0;
	if (c->watcher && r > 0 && record->type == WIRE_STACK_ENTRIES)
		tell_stack(c, (const struct wire_stack_entries *)record);
	if (r)
		return r > 0 ? 0 : r;
	if (c->watcher && watcher_before(c->watcher, record)) {
		if (c->inside)
			inside_called(c->inside, (const struct wire_call *)record);
		return 0;
	}
	r = to_stream(c, record);
	if (!r && c->watcher)
		watcher_after(c->watcher, record);
	return r;
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void poll_fd(struct capture *c, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void set_timer(struct capture *c, uint64_t in_ns)
{
	const struct itimerspec at = { .it_value = { .tv_nsec = in_ns } };

	timerfd_settime(c->timer, 0, &at, NULL);
}

void session_end_signals(const struct capture_options *options, sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	/* nohup: a blocked signal would be queued all the same */
	if (hangup.sa_handler != SIG_IGN && !options->hangup)
		sigaddset(set, SIGHUP);
}

int session_hold_back_end(const struct capture_options *options, struct err *err)
{
	sigset_t set, ends;

	session_end_signals(options, &ends);
	set = ends;
	if (options->hangup) /* it does not end by it, so that nohup has nothing to prevent */
		sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return last_resort_begin(&set, &ends, err);
}

/* An agent of the machine runs for months, mostly with nothing to read. */
static uint64_t drain_ns(const struct capture *c)
{
	return c->options.patient ? PATIENT_NS : c->cuda_only ? SLOW_NS : DRAIN_NS;
}

static int open_loop(struct capture *c, struct err *err)
{
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->epoll < 0 || c->timer < 0)
		return err_set(err, errno, "preparing to wait: %s", strerror(errno));
	c->signals = last_resort_fd();
	poll_fd(c, c->timer);
	poll_fd(c, c->signals);
	if (c->hold)
		poll_fd(c, hold_fd(c->hold));
	session_poll_agents(c, poll_fd);
	for (size_t i = 0; i < rings_count(c->rings); i++)
		poll_fd(c, ring_fd(rings_at(c->rings, i)));
	set_timer(c, drain_ns(c));
	return 0;
}

static void close_loop(struct capture *c)
{
	close(c->epoll);
	close(c->timer);
}

/* What ran on GPUs until now is to be in it. */
void capture_ask_for_snapshot(struct capture *c)
{
	bool later = c->gpu && gpu_measured(c->gpu);

	if (!c->snapshot_asked)
		c->snapshot_at_ns = capture_now_ns() + (later ? CAPTURE_GPU_LATE_NS : 0);
	c->snapshot_asked = true;
}

static void on_user_signal(struct capture *c, bool first)
{
	if (first && c->options.summary)
		c->summary_asked = true;
	else if (!first && c->options.snapshot)
		capture_ask_for_snapshot(c);
	else
		capture_notice(c, first ? "SIGUSR1 prints the summary so far in 'cuscope trace'; "
		                          "here it does nothing"
		                        : "SIGUSR2 writes what 'cuscope record --last' keeps; here "
		                          "it does nothing");
}

/* A command on the same terminal got Ctrl-C as well: what it does at its end is worth seeing. */
static void on_signal(struct capture *c)
{
	struct signalfd_siginfo info;

	while (read(c->signals, &info, sizeof(info)) == sizeof(info)) {
		uint64_t now = capture_now_ns();

		if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2) {
			on_user_signal(c, info.ssi_signo == SIGUSR1);
			continue;
		}
		if (info.ssi_signo == SIGHUP && c->options.hangup) {
			c->options.hangup(c->options.data);
			continue;
		}
		c->signalled++;
		c->last_signal = (int)info.ssi_signo;
		if (c->hold && !c->stopping)
			hold_pass_on(c->hold, (int)info.ssi_signo, (pid_t)info.ssi_pid);
		c->stop_at_ns = c->hold && !c->stopping ? now + GRACE_NS : now;
		c->stopping = true;
	}
}

/* Waits for something to do. Returns whether a ring asked to be read. */
static bool wait_for_work(struct capture *c)
{
	struct epoll_event events[WIRE_RINGS_MAX + 6];
	int n = epoll_wait(c->epoll, events, ARRAY_SIZE(events), -1);
	bool ring = false;
	uint64_t count;

	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == c->signals)
			on_signal(c);
		else if (fd == c->timer)
			ring |= read(fd, &count, sizeof(count)) < 0;
		else if (c->hold && fd == hold_fd(c->hold))
			c->command_ended = true;
		else if (!session_is_of_agents(c, fd))
			ring = true;
	}
	return ring;
}

static void say_waiting(struct capture *c)
{
	const char *what = c->options.target.kind == TARGET_PIDS
	                           ? "the process has not loaded CUDA yet"
	                           : "no matching process has loaded CUDA yet";

	if (c->told_waiting || atomic_load(&c->cuda_seen) ||
	    hook_list_was_asked(c->options.selection.hooks) ||
	    c->options.target.kind == TARGET_COMMAND || c->options.selection.none ||
	    c->options.hangup) /* one that stays waits for nothing */
		return;
	c->told_waiting = true;
	capture_notice(c, "%s: waiting for it (Ctrl-C to stop%s)", what,
	               c->options.timeout_ns ? "" : ", --timeout to give up");
}

static int read_rings(struct capture *c, uint64_t until_ns)
{
	int r;

	programs_awake(c->programs);
	r = order_read(c->order, c->rings, until_ns);
	if (c->correlate)
		correlate_passed(c->correlate, order_passed_ns(c->order));
	return r;
}

/* What those who asked for it are told in between. */
static void tell(struct capture *c, bool snapshot)
{
	struct capture_state state;

	if (c->options.progress) {
		capture_state(c, &state);
		c->options.progress(c->options.data, &state);
	}
	if (snapshot && c->sampler)
		sampler_take_lines_so_far(c->sampler);
	if (snapshot || c->summary_asked)
		session_fill_run(c);
	if (snapshot)
		c->options.snapshot(c->options.data, &c->run);
	if (c->summary_asked)
		c->options.summary(c->options.data, &c->run);
	c->snapshot_asked &= !snapshot;
	c->summary_asked = false;
}

/*
 * Older records have all arrived. What is behind by much is read in parts: agents' rings are
 * between.
 */
static int read_settled(struct capture *c, uint64_t now)
{
	order_limit(c->order, TURN_NS);
	return read_rings(c, now - SETTLE_NS);
}

/* When to look at the rings again; at once where the last look left something in them. */
static void set_next_look(struct capture *c, bool woken)
{
	bool left = order_was_limited(c->order);

	c->turns_cut += left;
	set_timer(c, left ? 1 : woken ? SOON_NS : drain_ns(c));
}

static int turn(struct capture *c, struct err *err)
{
	bool woken = wait_for_work(c);
	uint64_t now = capture_now_ns();
	bool snapshot;
	const char *say;
	int r = session_turn_agents(c, now, &c->failure);

	if (c->driver_events)
		driver_events_turn(c->driver_events, now);
	if (!r)
		r = read_settled(c, now);
	if (r) {
		*err = c->failure;
		return r;
	}
	snapshot = c->snapshot_asked && now >= c->snapshot_at_ns;
	if (c->metrics && (snapshot || c->summary_asked))
		metrics_feed_settle(c->metrics);
	r = session_turn_metrics(c, err);
	if (!r)
		r = pipeline_flush(c->pipeline, err);
	if (!r && c->watcher)
		r = watcher_tick(c->watcher, now, err);
	if (r)
		return r;
	say = governor_tick(c->governor, now);
	if (say)
		capture_notice(c, "%s", say);
	say = runtime_launches_turn(c->runtime_launches, now);
	if (say)
		capture_notice(c, "%s", say);
	foreign_jumps_turn(c->foreign_jumps, c->inside);
	if (c->driver_calls)
		driver_calls_turn(c->driver_calls, now);
	session_tell_given_up(c);
	session_tell_over_budget(c);
	tell(c, snapshot);
	session_look_again(c, now);
	session_let_go(c, now);
	if (modules_undecided(c->modules))
		file_reader_wake(c->reader);
	session_ask_for_gpus(c);
	set_next_look(c, woken);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void add_open_call(void *data, const struct wire_head *record, size_t bytes)
{
	struct capture *c = data;

	order_add(c->order, record, bytes);
}

/* The rest of the rings, and the calls that threads are still in. */
static int read_rest(struct capture *c)
{
	int r;

	order_limit(c->order, 0);
	modules_end(c->modules);
	if (c->driver_events)
		driver_events_finish(c->driver_events, capture_now_ns());
	r = session_read_rest_of_agents(c);
	if (!r)
		r = read_rings(c, capture_now_ns());
	if (!r && c->driver_calls)
		driver_calls_stop(c->driver_calls, add_open_call, c);
	if (!r && c->own && !c->watcher)
		own_hooks_open_calls(c->programs, add_open_call, c);
	if (!r && !c->watcher)
		programs_open_calls(c->programs, add_open_call, c);
	if (!r)
		r = order_finish(c->order);
	if (c->metrics)
		metrics_feed_settle(c->metrics);
	if (c->ranks)
		ranks_feed_settle(c->ranks);
	if (!r)
		r = session_turn_metrics(c, &c->failure);
	return !r && c->sampler ? sampler_finish(c->sampler, &c->failure) : r;
}

/*
 * Agents leave at a call of the program, so most are gone at once; those of idle programs are not
 * waited for long, nor against the user's will. Until then there are calls to be read.
 */
static int stop_agents(struct capture *c, int failed, struct err *err)
{
	uint64_t until = capture_now_ns() + LEAVE_NS;
	unsigned signalled = c->signalled;
	int r = failed;

	session_stop_agents(c);
	while (!session_agents_stopped(c) && capture_now_ns() < until &&
	       c->signalled == signalled) {
		if (!r) {
			r = turn(c, err);
			continue;
		}
		set_timer(c, DRAIN_NS); /* the turn that failed may not have come to that */
		wait_for_work(c);
		session_turn_agents(c, capture_now_ns(), &(struct err){ 0 });
	}
	return r;
}

static size_t wanted_hooks(struct capture *c)
{
	size_t n = 0;

	for (size_t i = 0; i < modules_count(c->modules); i++) {
		const struct module *module = modules_at(c->modules, i);

		for (size_t j = 0; j < module->n_hooks; j++)
			n += module->hooks[j].group != HOOK_OFF &&
			     module->hooks[j].group != HOOK_SUPPORT;
	}
	return n;
}

/* An empty trace makes one wonder. */
static void say_why_empty(struct capture *c)
{
	if (c->options.selection.none || hook_list_was_asked(c->options.selection.hooks) ||
	    (c->driver_calls && driver_calls_seen(c->driver_calls)))
		return;
	if (!atomic_load(&c->cuda_seen))
		capture_notice(c,
		               "nothing was traced: no target was seen to load CUDA (libcuda.so.1, "
		               "libcudart or a program with cudart linked in)");
	else if (!wanted_hooks(c) && !modules_let_go_any(c->modules))
		capture_notice(c, "nothing was traced: no CUDA function matches --only, --skip, "
		                  "--class and --layer; 'cuscope probes' lists them");
}

/* What was asked for and did not come: what else there is, is in its place. */
static void check_whole(struct capture *c, struct err *err)
{
	say_why_empty(c);
	capture_say_why_no_samples(c);
	if (c->options.metrics_asked && c->metrics && metrics_feed_is_awaited(c->metrics))
		capture_notice(c, "no GPU metrics: none had been read when the trace ended");
	if (c->gpu && !c->options.gpu->if_any && gpu_came_to_nothing(c->gpu))
		err_set(err, ENODATA, "there are no GPU times, which --gpu asks for");
}

static void file_found(void *data)
{
	struct capture *c = data;

	atomic_store(&c->cuda_seen, true);
}

int capture_run(struct capture *c, struct err *err)
{
	struct err end = { 0 };
	int r = open_loop(c, err), at_end;

	if (c->hold)
		capture_begin_clock(c); /* the command begins only now */
	session_begin_agents(c);
	c->run.gpu_times = c->gpu != NULL; /* asked for: whether they came is known at the end */
	capture_fill_stacks(c, &c->run.stacks);
	if (c->watcher)
		watcher_begin(c->watcher, &c->run);
	if (!r)
		r = pipeline_begin(c->pipeline, &c->run, err);
	if (!r && c->sampler)
		r = capture_begin_stacks(c, err);
	c->ready_ns = capture_now_ns();
	if (c->options.from_ns && c->options.from_ns < c->ready_ns)
		capture_notice(
			c, "it took %.1f s longer than until then to hook all: others began sooner",
			(double)(c->ready_ns - c->options.from_ns) / 1e9);
	if (!r && c->hold)
		r = hold_go(c->hold, err);
	if (r) {
		close_loop(c);
		return r;
	}
	if (c->hold)
		last_resort_in_steps();
	c->reader = file_reader_start(c->modules, file_found, c);
	say_waiting(c);
	while (!r && !session_is_over(c, capture_now_ns(), err))
		r = turn(c, err);
	if (c->hold) {
		programs_stop_holding(c->programs);
		hold_release(c->hold);
	}
	if (c->sampler)
		sampler_end(c->sampler);
	foreign_jumps_finish(c->foreign_jumps, c->inside);
	if (c->gpu || c->inside)
		r = stop_agents(c, r, err);
	if (!r && (read_rest(c) || session_finish_agents(c))) {
		r = c->failure.code;
		*err = c->failure;
	}
	capture_take_lines(c);
	c->reader_hangs = !file_reader_stop(c->reader);
	session_tell_end(c, r ? err : NULL);
	session_fill_run(c);
	at_end = pipeline_end(c->pipeline, &c->run, &end);
	if (!at_end && c->watcher)
		at_end = watcher_end(c->watcher, &c->run, &end);
	if (!r && at_end) {
		r = at_end;
		*err = end;
	}
	close_loop(c);
	if (!r && !err->code)
		check_whole(c, err);
	return r ? r : err->code;
}
