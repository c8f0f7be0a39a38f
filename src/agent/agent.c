// SPDX-License-Identifier: MIT
#include "agent/agent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_channel.h"
#include "agent/agent_failure.h"
#include "agent/agent_library.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "probe/account.h"
#include "probe/helper.h"

/* ---- agent reads --------------------------------------------------------------------------- */

/* A process with so many threads that looking at them takes longer may not. */
#define READS_FILTERS_NS 50000000ull

struct reads_filters {
	unsigned mode;
	unsigned count; /* 0: before Linux 5.9, or there are none */
};

/* False: the thread is gone. */
static bool read_filters(pid_t pid, pid_t tid, struct reads_filters *filters)
{
	char path[64], line[256];
	bool found = false;
	FILE *file;

	*filters = (struct reads_filters){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		found |= sscanf(line, "Seccomp: %u", &filters->mode) == 1;
		sscanf(line, "Seccomp_filters: %u", &filters->count);
	}
	if (file)
		fclose(file);
	return found;
}

/* For one thread that takes some 20 us, or, with all the groups that it can have, 30 ms. */
bool agent_may_read(pid_t pid, bool asked)
{
	uint64_t person = helper_person_of(pid), busy_ns = 0, begin_ns = helper_busy_ns();
	unsigned threads = 0, count = 0;
	bool may = !look_time_is_over(LOOK_AT_THREADS, person);
	AT_END(process_list_end) DIR *list = process_list(pid);
	pid_t tid;

	while (may && (tid = process_next(list))) {
		struct reads_filters filters;

		if (!read_filters(pid, tid, &filters))
			continue;
		threads++;
		busy_ns = helper_busy_ns() - begin_ns;
		may = busy_ns <= READS_FILTERS_NS;
		if (!filters.mode)
			continue;
		may &= asked && filters.count && (!count || filters.count == count);
		count = filters.count;
	}
	look_time_charge(LOOK_AT_THREADS, person, busy_ns);
	return may && threads;
}

/* ---- agent --------------------------------------------------------------------------------- */

#define RING_BYTES     ((size_t)8 << 20)
#define FLUSH_MS       1000 /* one flush took 0.6 ms on an H200 */
#define ENTER_LIMIT_NS 10000000000ull
#define HANGS_NS       20000000000ull /* the limit, and what inject.c adds */
#define SILENT_NS      10000000000ull /* from hello to its first word */
#define STUCK_NS       10000000000ull
#define STATE_UNKNOWN  UINT32_MAX
#define PROCESS_EXITS  0x4 /* PF_EXITING in /proc/PID/stat */

struct agent *agent_new(struct agent_common *common, pid_t pid)
{
	struct agent *agent = xcalloc(1, sizeof(*agent));

	agent->common = common;
	agent->pid = pid;
	agent->start_time = process_start_time(pid);
	agent->person = helper_person_of(pid);
	agent->socket = agent->bell = -1;
	agent->state = STATE_UNKNOWN;
	return agent;
}

/*
 * Before it is closed: a process that was just forked may hold a copy yet, and epoll would tell of
 * an agent that is no more.
 */
static void stop_waiting(const struct agent *agent, int fd)
{
	epoll_ctl(agent->common->epoll, EPOLL_CTL_DEL, fd, NULL);
}

const char *agent_lacks(const struct agent_common *common)
{
	return common->options.kinds ? "GPU times" : "calls recorded inside";
}

/* What keeps it from coming back; its last lost records stay counted. */
static void finish(struct agent *agent)
{
	agent_add_lost(agent, &agent->common->lost);
	agent_probes_end(agent, NULL);
	if (agent->socket >= 0) {
		stop_waiting(agent, agent->socket);
		helper_let_go(agent->socket);
	}
	if (agent->bell >= 0) {
		stop_waiting(agent, agent->bell);
		close(agent->bell);
	}
	if (agent->inject)
		stop_waiting(agent, inject_fd(agent->inject));
	inject_free(agent->inject);
	agent_ring_free(agent->ring);
	agent->socket = agent->bell = -1;
	agent->inject = NULL;
	agent->ring = NULL;
	agent->over = true;
}

void agent_free(struct agent *agent)
{
	agent_probes_drop(agent);
	if (!agent->over)
		finish(agent);
	free(agent);
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Of a number that a process tells, what is added to others' and told of all. */
static uint64_t believed(uint64_t told, uint64_t most)
{
	return told < most ? told : most;
}

static void say(struct agent *agent, const struct agent_shared *shared, enum agent_state state,
                const char *why)
{
	const struct agents_options *options = &agent->common->options;
	AT_END(buf_free) struct buf cupti = { 0 };
	struct agent_status status = {
		.pid = (uint32_t)agent->pid,
		.state = state,
		.failure = state == AGENT_FAILED ? shared->failure : AGENT_FINE,
		.why = why,
		.cupti_version = shared->cupti_version,
		.driver_version = shared->driver_version,
		.active_since_ns = agent->since_ns,
		.active_until_ns = shared->active_until_ns,
		.clock_error_ns = believed(shared->clock_error_ns, AGENT_CLOCK_ERROR_MOST_NS),
		.leftover =
			shared->leftover <= AGENT_LEFT_SHARED ? shared->leftover : AGENT_LEFT_CUPTI,
		.nodes_instead = shared->nodes_instead,
		.stopped_ns = agent->stopped_ns,
		.stopped_parts = agent->stopped_parts,
	};

	if (*shared->cupti_path) {
		text_add_safe(&cupti, shared->cupti_path);
		status.cupti = cupti.data;
	}
	if (options->state && !agent->told_failed)
		options->state(options->data, &status);
	agent->told_failed |= state == AGENT_FAILED;
}

static void shared_of(const struct agent *agent, struct agent_shared *shared)
{
	memset(shared, 0, sizeof(*shared));
	if (agent->ring)
		agent_ring_shared(agent->ring, shared);
}

void agent_fail(struct agent *agent, const char *fmt, ...)
{
	struct agent_shared shared;
	struct buf why = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&why, fmt, ap);
	va_end(ap);
	shared_of(agent, &shared);
	shared.failure = AGENT_FINE; /* it is we who say so */
	say(agent, &shared, AGENT_FAILED, why.data);
	agent_probes_end(agent, why.data);
	buf_free(&why);
	finish(agent);
}

/* While windows are measured, their beginnings and ends are not told. */
static bool is_news(const struct agent *agent, enum agent_state state)
{
	const struct agent_common *common = agent->common;

	if (!common->options.window_ns || common->order == AGENT_STOP)
		return true;
	if (state == AGENT_STARTING || state == AGENT_RUNNING)
		return !agent->measured;
	return state != AGENT_ENDING && state != AGENT_PAUSED;
}

static void tell_unmeasured(struct agent *agent, uint64_t since_ns)
{
	const struct agents_options *options = &agent->common->options;

	if (agent->until_ns && agent->until_ns < since_ns && options->unmeasured)
		options->unmeasured(options->data, (uint32_t)agent->pid, agent->until_ns, since_ns);
	agent->until_ns = 0;
}

/* It measures no more, or again. Told to stop while it measured, it has no time without. */
static void follow_unmeasured(struct agent *agent, const struct agent_shared *shared,
                              enum agent_state state)
{
	const struct agent_common *common = agent->common;

	if (state == AGENT_RUNNING)
		tell_unmeasured(agent, shared->active_since_ns);
	else if ((state == AGENT_ENDING || state == AGENT_PAUSED) && common->order != AGENT_STOP)
		agent->until_ns = shared->active_until_ns;
	else if (state == AGENT_OFF || state == AGENT_FAILED)
		tell_unmeasured(agent,
		                common->order == AGENT_STOP ? common->stop_ns : common->now_ns);
}

static void tell(struct agent *agent, const struct agent_shared *shared, enum agent_state state)
{
	struct buf why = { 0 };

	if (!agent->since_ns)
		agent->since_ns = shared->active_since_ns;
	if (state == AGENT_RUNNING && !agent->common->first_window_ns)
		agent->common->first_window_ns = agent->common->now_ns;
	if (state == AGENT_FAILED || state == AGENT_PROBES_ONLY)
		agent_failure_text(&why, agent->pid, shared);
	else
		agent_note_text(&why, agent->pid, state, shared);
	follow_unmeasured(agent, shared, state);
	if (is_news(agent, state))
		say(agent, shared, state == AGENT_PROBES_ONLY ? AGENT_FAILED : state, why.data);
	agent->measured |= state == AGENT_RUNNING;
	buf_free(&why);
	if (state == AGENT_OFF || state == AGENT_FAILED)
		finish(agent);
}

static const char *name_of(uint32_t state)
{
	static const char *const names[] = {
		[AGENT_STARTING] = "still looks for CUPTI",
		[AGENT_RUNNING] = "still measures",
		[AGENT_ENDING] = "has stopped measuring",
		[AGENT_PAUSED] = "has stopped measuring",
		[AGENT_OFF] = "has left",
		[AGENT_FAILED] = "has failed",
		[AGENT_PROBES_ONLY] = "still records calls",
	};

	return state < AGENT_STATES ? names[state] : "is in a state that is not known";
}

void agent_abandon(struct agent *agent)
{
	struct agent_shared shared;
	AT_END(buf_free) struct buf why = { 0 };

	if (agent->over || !agent->spoke)
		return;
	shared_of(agent, &shared);
	if (agent->state == AGENT_ENDING)
		buf_printf(&why,
		           "process %d made no CUDA call since it was told to stop: the agent "
		           "leaves CUPTI at its next one",
		           agent->pid);
	else
		buf_printf(&why,
		           "the agent in process %d %s and did not answer; it leaves when it "
		           "notices that cuscope is gone",
		           agent->pid, name_of(agent->state));
	say(agent, &shared, agent->state < AGENT_STATES ? agent->state : AGENT_STARTING, why.data);
}

/* ---- coming in ------------------------------------------------------------------------------- */

void agent_enter(struct agent *agent)
{
	struct inject_options options = {
		.pid = agent->pid,
		.start_time = agent->start_time,
		.name = "cuscope-agent",
		.function = AGENT_ENTER,
		.limit_ns = ENTER_LIMIT_NS,
	};
	struct err err = { 0 };

	options.library = agent_library_bytes(&options.bytes);
	if (inject_begin(&options, &agent->inject, &err)) {
		agent->inject = NULL;
		agent_fail(agent, "no %s of process %d: %s", agent_lacks(agent->common), agent->pid,
		           err.text);
	}
}

/*
 * It ends itself by then, but for where a target's memory or file lets it wait for ever in the
 * kernel, which no signal ends. Only a few are under way at once: it is not to keep others out.
 */
bool agent_hangs(struct agent *agent)
{
	if (!agent->inject)
		return false;
	if (!agent->entered_ns)
		agent->entered_ns = agent->common->now_ns;
	return agent->common->now_ns - agent->entered_ns > HANGS_NS;
}

void agent_entered(struct agent *agent)
{
	struct inject_result result = { .socket = -1 };
	struct err err = { 0 };
	int rc = inject_result(agent->inject, &result, &err);

	stop_waiting(agent, inject_fd(agent->inject));
	inject_free(agent->inject);
	agent->inject = NULL;
	if (rc) {
		agent_fail(agent, "no %s of process %d: %s", agent_lacks(agent->common), agent->pid,
		           err.text);
		return;
	}
	agent->stopped_ns = result.stopped_ns;
	memcpy(agent->stopped_parts, result.part_ns, sizeof(agent->stopped_parts));
	agent->may_read = result.may_read;
	if (agent->common->order == AGENT_STOP) { /* too late: it sees that the socket closes */
		helper_let_go(result.socket);
		finish(agent);
		return;
	}
	agent_greet(agent, result.socket);
}

static uint32_t probes_flags(const struct agent *agent)
{
	const struct agents_probes *probes = &agent->common->options.probes;

	if (!probes->wanted)
		return 0;
	return AGENT_PROBES | (probes->begins ? AGENT_PROBES_BEGINS : 0) |
	       (probes->waits ? AGENT_PROBES_WAIT : 0) |
	       (probes->clock == AGENT_CLOCK_TICKS ? AGENT_PROBES_TICKS : 0) |
	       (agent_may_read(agent->pid, agent->may_read) ? AGENT_PROBES_READS : 0);
}

static int send_hello(struct agent *agent, int memfd, int bell)
{
	const struct agent_common *common = agent->common;
	struct agent_message hello = {
		.type = AGENT_HELLO,
		.abi = AGENT_ABI,
		.kinds = common->options.kinds,
		.cupti = common->cupti >= 0,
		.flush_ms = FLUSH_MS,
		.probes = probes_flags(agent),
	};
	int fds[] = { memfd, bell, common->cupti };

	return channel_send(agent->socket, &hello, fds, common->cupti >= 0 ? 3 : 2);
}

/* Whether it is no more, or about to be: its sockets are closed some time before that shows. */
static bool process_ends(pid_t pid)
{
	struct process_stat stat;

	return !process_stat_read(pid, 0, &stat) || stat.state == 'Z' || stat.state == 'X' ||
	       stat.flags & PROCESS_EXITS;
}

void agent_greet(struct agent *agent, int socket)
{
	size_t bytes = agent->common->options.ring_bytes;
	struct err err = { 0 };
	int64_t offset_ns = 0;
	int memfd = -1, bell[2], rc;

	agent->socket = socket;
	agent->greeted_ns = agent->common->now_ns;
	if (agent_ring_new(bytes ? bytes : RING_BYTES, &agent->ring, &memfd, &err)) {
		agent_fail(agent, "no %s of process %d: %s", agent_lacks(agent->common), agent->pid,
		           err.text);
		return;
	}
	agent_ring_set_names(agent->ring, agent->common->name_offset);
	agent_ring_set_walks(agent->ring, &agent->common->options.probes.due);
	if (!process_clock_offset(agent->pid, &offset_ns) && !process_ends(agent->pid)) {
		close(memfd);
		agent_fail(agent,
		           "no %s of process %d: it is in a time namespace, and nobody tells how "
		           "its clock differs",
		           agent_lacks(agent->common), agent->pid);
		return;
	}
	agent_ring_set_clock(agent->ring, offset_ns);
	rc = channel_bell(bell);
	if (rc) {
		close(memfd);
		agent_fail(agent, "no %s of process %d: cannot make sockets: %s",
		           agent_lacks(agent->common), agent->pid, strerror(-rc));
		return;
	}
	agent->bell = bell[0];
	rc = send_hello(agent, memfd, bell[1]);
	close(bell[1]);
	close(memfd);
	if (rc)
		agent->closed = true; /* it ended just now */
	agent->ordered = AGENT_RUN;
}

/* ---- turns ----------------------------------------------------------------------------------- */

void agent_hear(struct agent *agent)
{
	agent->closed |= channel_is_over(agent->socket);
	channel_hear_bell(agent->bell); /* what it rang for, agent_turn sees */
}

/* Of the GPU. */
static bool asks_for_work(const struct agent_head *record)
{
	return record->type == AGENT_CALL ||
	       (record->type == AGENT_PROBED &&
	        ((const struct agent_probed *)record)->correlation != 0);
}

static void pass_on(void *data, const struct agent_head *record)
{
	struct agent *agent = data;
	const struct agents_options *options = &agent->common->options;

	agent->asked += asks_for_work(record);
	if (options->record)
		options->record(options->data, (uint32_t)agent->pid, record);
}

/*
 * A thread that ends while it writes a record leaves one that never gets its length; nothing after
 * it can be read. That takes a signal handler that jumps out, or a cancellation.
 */
static void check_stuck(struct agent *agent, int64_t bytes)
{
	if (bytes || !agent_ring_waits(agent->ring)) {
		agent->stuck_ns = 0;
		return;
	}
	if (!agent->stuck_ns)
		agent->stuck_ns = agent->common->now_ns;
	else if (agent->common->now_ns - agent->stuck_ns > STUCK_NS)
		agent_fail(
			agent,
			"no more %s of process %d: a thread of it began to write a record and did "
			"not end it",
			agent_lacks(agent->common), agent->pid);
}

static void read_ring(struct agent *agent)
{
	struct err err = { 0 };
	int64_t bytes = agent_ring_read(agent->ring, pass_on, agent, &err);

	if (bytes < 0)
		agent_fail(agent,
		           "no more %s of process %d: the memory shared with it holds %s, so "
		           "something has overwritten it",
		           agent_lacks(agent->common), agent->pid, err.text);
	else if (!agent->closed)
		check_stuck(agent, bytes);
}

/* What it says of itself, when that is something new. */
static void look(struct agent *agent, uint32_t state)
{
	struct agent_shared shared;

	agent_ring_shared(agent->ring, &shared);
	if (!shared.magic || !shared.abi) {
		if (agent->common->now_ns - agent->greeted_ns > SILENT_NS)
			agent_fail(agent,
			           "the agent in process %d did not begin within %llu s: the "
			           "process may be stopped, or short of memory; try again",
			           agent->pid, SILENT_NS / 1000000000ull);
		return;
	}
	if (shared.magic == AGENT_MAGIC && shared.abi != AGENT_ABI) {
		agent_fail(agent,
		           "process %d holds the agent of another version of cuscope: %s "
		           "need a fresh start of the process",
		           agent->pid, agent_lacks(agent->common));
		return;
	}
	if (shared.magic != AGENT_MAGIC || state >= AGENT_STATES) {
		agent_fail(agent,
		           "no %s of process %d: what its agent says makes no sense (version %u, "
		           "state %u)",
		           agent_lacks(agent->common), agent->pid, shared.abi, state);
		return;
	}
	agent->spoke = true;
	agent->state = state;
	tell(agent, &shared, state);
}

static void give_order(struct agent *agent)
{
	struct agent_message message = { .type = agent->common->order, .abi = AGENT_ABI };
	int rc;

	if (agent->ordered == message.type)
		return;
	rc = channel_send(agent->socket, &message, NULL, 0);
	if (!rc)
		agent->ordered = message.type;
	else if (rc != -EAGAIN)
		agent->closed = true;
}

/*
 * A state is told before the records that were written after it where something begins, and after
 * those before it where something ends.
 */
void agent_turn(struct agent *agent)
{
	uint32_t state;

	if (agent->over || !agent->ring)
		return;
	state = agent_ring_state(agent->ring);
	if (state == AGENT_RUNNING && state != agent->state)
		look(agent, state);
	if (!agent->over)
		read_ring(agent);
	if (!agent->over && (state != agent->state || !agent->spoke))
		look(agent, state);
	if (!agent->over)
		agent_probes_turn(agent);
	if (!agent->over && !agent->closed)
		give_order(agent);
	if (!agent->over && agent->closed)
		agent_end(agent);
}

void agent_end(struct agent *agent)
{
	struct agent_shared shared;

	if (!agent->closed) { /* else the last turn was after its end */
		agent->closed = true;
		agent_turn(agent);
	}
	if (agent->over)
		return;
	if (!agent->spoke && agent->ring && !process_ends(agent->pid)) {
		agent_fail(agent,
		           "no %s of process %d: its agent left before it had begun, because "
		           "it found no memory, or cuscope was too busy to answer in time",
		           agent_lacks(agent->common), agent->pid);
		return;
	}
	shared_of(agent, &shared);
	/* the turn may have begun before it did; and a thread may launch on while another one
	 * is in the exit, behind the last flush */
	if (agent->since_ns && (!shared.active_until_ns || shared.state == AGENT_RUNNING))
		shared.active_until_ns = clock_now_ns();
	follow_unmeasured(agent, &shared, AGENT_OFF);
	if (agent->spoke)
		say(agent, &shared, AGENT_OFF, NULL);
	finish(agent);
}

void agent_add_lost(const struct agent *agent, struct agents_lost *lost)
{
	struct agent_shared shared;

	if (!agent->ring)
		return;
	agent_ring_shared(agent->ring, &shared);
	lost->ring += believed(shared.lost_ring, AGENT_LOST_MOST);
	lost->buffers += believed(shared.lost_buffers, AGENT_LOST_MOST);
	lost->times += believed(shared.lost_times, AGENT_LOST_MOST);
	lost->ranges += believed(shared.lost_ranges, AGENT_LOST_MOST);
	for (size_t i = 0; i < AGENT_PROBE_LOSTS; i++)
		lost->probes[i] += believed(shared.probe_lost[i], AGENT_LOST_MOST);
}
