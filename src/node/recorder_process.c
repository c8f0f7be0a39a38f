// SPDX-License-Identifier: MIT
#include "node/recorder_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/wire.h"
#include "analysis/missed.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "capture/capture.h"
#include "hooks/hook_list.h"
#include "node/account.h"
#include "node/flight_ranks.h"
#include "node/rules.h"
#include "probe/person.h"
#include "top/top_why.h"
#include "trace/writer.h"

/* ---- recorder save ------------------------------------------------------------------------- */

#define CHILD_SECONDS 120 /* a disk that takes longer is given up */
#define TELL_MS       5000

static void save_tell(const struct recorder_saver *saver, uint32_t why, const char *text,
                      const struct recorder_saved *saved)
{
	struct recorder_message message = { .kind = RECORDER_SAVED };
	struct pollfd room = { .fd = saver->socket, .events = POLLOUT };

	if (saved)
		message.saved = *saved;
	message.saved.ticket = saver->ticket;
	message.saved.why = why;
	snprintf(message.text, sizeof(message.text), "%s", text);
	while (recorder_send(saver->socket, &message) == -EAGAIN && poll(&room, 1, TELL_MS) > 0)
		;
}

/* ---- the child ----------------------------------------------------------------------------- */

/* What it writes, while it does. */
struct save_writing {
	struct spool_file file;
	struct recorder_saved saved;
	const struct recorder_settings *settings;
};

/* The writer closes a descriptor of its own. */
static int open_file(void *data, const char **name, struct err *err)
{
	struct save_writing *writing = data;
	int fd = fcntl(writing->file.fd, F_DUPFD_CLOEXEC, 0);

	*name = "the recording";
	return fd < 0 ? err_set(err, errno, "cannot write the recording: %s", strerror(errno)) : fd;
}

static void save_written(void *data, const struct run_info *run, uint64_t events, uint64_t bytes)
{
	struct save_writing *writing = data;

	writing->saved.events = events;
	writing->saved.bytes = bytes;
}

/* No more than the spool has room for, whatever the recording turns out to be. */
static void limit_file(uint64_t room)
{
	struct rlimit limit = { room, room };

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* "slow_step", or "slow_step_gpu" for what was measured after it. */
static int keep_file(const struct recorder_saver *saver, struct save_writing *writing,
                     const struct recorder_save *save, struct err *err)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s", rule_name(save->rule),
	         saver->settings->gpu_times ? "_gpu" : "");
	return spool_keep(&writing->file, name, time(NULL), writing->saved.name, err);
}

/* As clocks are now: the recorder runs for months, and a clock may have been set since. */
static int64_t realtime_offset_ns(void)
{
	return (int64_t)(clock_of_ns(CLOCK_REALTIME) - clock_now_ns());
}

static int write_file(struct recorder_saver *saver, struct save_writing *writing,
                      const struct recorder_save *save, const struct run_info *run,
                      enum spool_why *why, struct err *err)
{
	struct missed_left_out left_out = { 0 };
	struct run_info told = *run;
	struct writer_stats stats;
	int rc;

	told.reason = save->reason;
	told.realtime_offset_ns = realtime_offset_ns();
	if (save->last_ns)
		writer_shorten(saver->writer, save->last_ns);
	rc = writer_settle(saver->writer, run->end_ns, err);
	if (rc)
		return rc;
	missed_left_out_add(&left_out, saver->writer, &told); /* this process ends with its words */
	writer_stats(saver->writer, &stats);
	rc = spool_begin(saver->spool, &saver->settings->spool,
	                 stats.held + stats.held / 16 + (1 << 20), &writing->file, why, err);
	if (rc)
		return rc;
	limit_file(writing->file.room);
	writer_redirect(saver->writer, open_file, save_written, writing);
	rc = writer_snapshot(saver->writer, &told, err);
	if (rc)
		spool_drop(&writing->file);
	else
		rc = keep_file(saver, writing, save, err);
	*why = spool_why_of(rc);
	return rc;
}

static void write_and_tell(struct recorder_saver *saver, const struct recorder_save *save,
                           const struct run_info *run)
{
	struct save_writing writing = { .settings = saver->settings };
	enum spool_why why = SPOOL_UNWRITABLE;
	struct err err = { 0 };

	prctl(PR_SET_NAME, "cuscope-save");
	/* Probes and maps are the recorder's: a child that hangs must not keep them. */
	worker_close_all_but(saver->socket, saver->spool);
	alarm(CHILD_SECONDS);
	if (!write_file(saver, &writing, save, run, &why, &err))
		why = SPOOL_OK;
	save_tell(saver, why, err.text, &writing.saved);
	_exit(0);
}

/* ---- the recorder -------------------------------------------------------------------------- */

void recorder_save(struct recorder_saver *saver, const struct recorder_save *save,
                   const struct run_info *run)
{
	if (saver->child) {
		struct recorder_saver other = *saver;

		other.ticket = save->ticket;
		save_tell(&other, RECORDER_BUSY, "another recording is still being written", NULL);
		return;
	}
	saver->ticket = save->ticket;
	saver->child = fork();
	if (!saver->child)
		write_and_tell(saver, save, run);
	if (saver->child > 0)
		return;
	saver->child = 0;
	save_tell(saver, RECORDER_CRASHED, strerror(errno), NULL);
}

/* Looks whether the child has ended, and tells of one that could not say how it went. */
static void recorder_save_look(struct recorder_saver *saver)
{
	int status;

	if (!saver->child || waitpid(saver->child, &status, WNOHANG) != saver->child)
		return;
	saver->child = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		save_tell(saver, RECORDER_CRASHED, "who wrote the recording was ended", NULL);
}

/* ---- recorder process ---------------------------------------------------------------------- */

#define SETUP_MS    10000
#define STATE_NS    1000000000ull
#define WRITER_MS   50
#define HEARD_MS    5000
#define FIRED_MOST  16
#define COST_NOTICE "tracing costs about"

#define GPU_KINDS (AGENT_WANT_KERNELS | AGENT_WANT_COPIES | AGENT_WANT_SETS | AGENT_WANT_NVTX)

/* The first consumer; it keeps nothing. */
struct flight {
	struct consumer consumer; /* first: what the capture holds */
	struct recorder_settings settings;
	struct call_rules *rules;
	struct top_why *why;        /* NULL: there is no account */
	struct flight_ranks *ranks; /* NULL: they are not watched */
	struct capture *capture;
	struct recorder_saver saver;
	struct recorder_state state;
	struct recorder_save save; /* that is asked for */
	bool save_asked, over, told_left;
	struct recorder_message fired[FIRED_MOST]; /* that there was no room for */
	size_t n_fired;
	bool looked; /* at the account, */
	uint64_t told_account, told_ns, began_ns;
};

/* ---- what is said to the agent ------------------------------------------------------------- */

/* What it has no room for is left out: it looks often. */
static void send_text(const struct flight *flight, enum recorder_kind kind, const char *text)
{
	struct recorder_message message = { .kind = kind };

	snprintf(message.text, sizeof(message.text), "%s", text);
	recorder_send(flight->saver.socket, &message);
}

/* What tracing costs is a metric, and the options that would be advised are not the agent's. */
static void notice(void *data, const char *text)
{
	if (strncmp(text, COST_NOTICE, strlen(COST_NOTICE)))
		send_text(data, RECORDER_NOTICE, text);
}

/* It fires once: where there is no room for it, it is said again. */
static void say_fired(struct flight *flight)
{
	while (flight->n_fired && !recorder_send(flight->saver.socket, flight->fired))
		memmove(flight->fired, flight->fired + 1,
		        --flight->n_fired * sizeof(*flight->fired));
}

static void fired(void *data, enum rule rule, uint64_t person, const char *why)
{
	struct recorder_message message = { .kind = RECORDER_FIRED,
		                            .fired = { .rule = rule, .person = person } };
	struct flight *flight = data;

	snprintf(message.text, sizeof(message.text), "%s", why);
	if (flight->n_fired < FIRED_MOST)
		flight->fired[flight->n_fired++] = message;
	say_fired(flight);
}

/* What is held since that time, or since it was begun. */
static uint64_t held_ns(const struct flight *flight, uint64_t since_ns)
{
	uint64_t from_ns = since_ns > flight->began_ns ? since_ns : flight->began_ns;
	uint64_t now = clock_now_ns(), held = now > from_ns ? now - from_ns : 0;

	return held < flight->settings.last_ns ? held : flight->settings.last_ns;
}

static void take_shorts(struct flight *flight)
{
	struct writer_left_out left[RECORDER_SHORT_MOST];
	size_t n = writer_left_out(flight->saver.writer, left, RECORDER_SHORT_MOST);

	flight->state.n_short = n < RECORDER_SHORT_MOST ? (uint32_t)n : RECORDER_SHORT_MOST;
	for (uint32_t i = 0; i < flight->state.n_short; i++)
		flight->state.shorts[i] =
			(struct recorder_short){ .person = left[i].person,
			                         .held_ns = held_ns(flight, left[i].until_ns) };
}

static void send_state(struct flight *flight, const struct capture_state *capture)
{
	struct recorder_message message = { .kind = RECORDER_STATE };
	struct writer_stats stats = { 0 };

	if (flight->settings.enabled) {
		writer_stats(flight->saver.writer, &stats);
		take_shorts(flight);
	}
	flight->state.left_out = stats.left_out;
	flight->state.held_bytes = stats.held;
	flight->state.definition_bytes = stats.held - stats.bytes;
	flight->state.held_ns = held_ns(flight, stats.dropped_ns);
	flight->state.lost = missed_events(capture->lost);
	flight->state.overhead_percent = capture->overhead_percent;
	flight->state.scale = capture->estimate_scale;
	flight->state.cpu_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	call_rules_figures(flight->rules, &flight->state.steps_judged,
	                   &flight->state.steps_forgotten);
	message.state = flight->state;
	recorder_send(flight->saver.socket, &message);
}

/* ---- what it is told ----------------------------------------------------------------------- */

static void obey(struct flight *flight)
{
	struct recorder_message message;
	int rc;

	while (!(rc = recorder_receive(flight->saver.socket, &message))) {
		if (message.kind == RECORDER_LOOK)
			flight->looked = message.looked;
		if (message.kind != RECORDER_SAVE || message.save.rule >= RULE_COUNT ||
		    !flight->settings.enabled)
			continue;
		flight->save = message.save;
		flight->save_asked = true;
		if (!flight->settings.gpu_times)
			kill(getpid(), SIGUSR2); /* the capture then calls take_snapshot() */
	}
	if (rc == -EPIPE)
		flight->over = true;
}

static void take_snapshot(void *data, const struct run_info *run)
{
	struct flight *flight = data;

	if (flight->why)
		top_why_take(flight->why, run);
	if (!flight->save_asked) /* the account's, or a signal of somebody else's */
		return;
	flight->save_asked = false;
	recorder_save(&flight->saver, &flight->save, run);
}

/* Where there is no room for it now it is told at the next turn. */
static void turn_account(struct flight *flight, uint64_t now)
{
	struct top_why_shown shown;

	if (top_why_turn(flight->why, now, flight->looked))
		capture_ask_for_snapshot(flight->capture);
	shown = top_why_shown(flight->why);
	if (shown.number != flight->told_account &&
	    (!shown.number || !account_send(flight->saver.socket, shown.json, false)))
		flight->told_account = shown.number;
}

/* What is held has no more of them than the seconds that it is of. A failure to take that is the
 * capture's, which ends with it. */
static void turn_ranks(struct flight *flight, const struct capture_state *state, uint64_t now)
{
	struct err err = { 0 };
	char text[160];
	size_t left = 0;

	flight_ranks_turn(flight->ranks, state, now, flight->saver.socket, &flight->state);
	if (flight->settings.enabled)
		flight_ranks_remind(flight->ranks, flight->capture, &left, &err);
	if (!left || flight->told_left)
		return;
	flight->told_left = true;
	snprintf(text, sizeof(text),
	         "recordings are told of %u ranks a second, and there are %zu more: short ones "
	         "match some with none",
	         FLIGHT_RANKS_TOLD, left);
	notice(flight, text);
}

static void progress(void *data, const struct capture_state *state)
{
	struct flight *flight = data;
	uint64_t now = clock_now_ns();

	recorder_save_look(&flight->saver);
	say_fired(flight);
	obey(flight);
	if (flight->why)
		turn_account(flight, now);
	if (now - flight->told_ns < STATE_NS)
		return;
	if (!flight->told_ns) {
		flight->began_ns = now;
		send_text(flight, RECORDER_READY, "");
	}
	flight->told_ns = now;
	call_rules_tick(flight->rules, now);
	if (flight->ranks)
		turn_ranks(flight, state, now);
	send_state(flight, state);
}

static bool ras_again(void *data)
{
	struct flight *flight = data;

	return flight->ranks && flight_ranks_want_ras(flight->ranks, clock_now_ns());
}

static bool enough(void *data)
{
	return ((const struct flight *)data)->over;
}

/* ---- the consumer -------------------------------------------------------------------------- */

static int see(struct consumer *self, const struct event *event, struct err *err)
{
	struct flight *flight = (struct flight *)self;

	flight->state.events++;
	flight->state.processes += event->type == EVENT_PROCESS;
	if (flight->settings.enabled)
		call_rules_event(flight->rules, event);
	if (flight->ranks)
		flight_ranks_event(flight->ranks, event);
	return 0;
}

/* What is held is written when a rule fires, and not when the recorder ends. */
static int no_file(void *data, const char **name, struct err *err)
{
	return err_set(err, ECANCELED, "the recorder ends");
}

/* GPU times come late, so their recording is written when all have. */
static int finish(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct flight *flight = (struct flight *)self;

	if (flight->settings.gpu_times && !flight->over)
		take_snapshot(flight, run);
	return 0;
}

static const struct consumer_ops ops = { .event = see, .end = finish };

/* ---- the process --------------------------------------------------------------------------- */

static void hold_back_user_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int receive_setup(struct flight *flight)
{
	struct pollfd ready = { .fd = WORKER_SOCKET, .events = POLLIN };
	struct recorder_message message;

	if (poll(&ready, 1, SETUP_MS) != 1 || recorder_receive(WORKER_SOCKET, &message) ||
	    message.kind != RECORDER_SETUP)
		return -EPROTO;
	flight->settings = message.setup;
	return 0;
}

static int record(struct flight *flight, struct err *err)
{
	const struct recorder_settings *settings = &flight->settings;
	const struct capture_gpu ranges = { .kinds = AGENT_WANT_NVTX };
	const struct capture_gpu times = { .kinds = GPU_KINDS };
	struct consumer *consumers[] = { &flight->consumer, flight->saver.writer,
		                         flight->why ? top_why_consumer(flight->why) : NULL };
	AT_END(hook_list_free) struct hook_list hooks = { 0 };
	struct capture_options options = {
		.target = { .kind = TARGET_ALL, .follow = true },
		.returns = true,
		.who = settings->enabled,
		.who_newest = true,
		.ras = settings->ranks && settings->ras,
		.max_overhead = settings->max_overhead,
		.gpu = settings->gpu_times                                  ? &times
		       : settings->enabled && settings->rules.step_range[0] ? &ranges
		                                                            : NULL,
		.in_process = settings->gpu_times ? IN_PROCESS_NO : IN_PROCESS_WITH_GPU,
		.duration_ns = settings->gpu_times ? settings->gpu_window_ns : 0,
		.consumers = consumers,
		.n_consumers = !settings->enabled ? 1
		               : flight->why      ? 3
		                                  : 2,
		.enough = enough,
		.patient = !settings->enabled,
		.ras_again = ras_again,
		.notice = notice,
		.progress = progress,
		.snapshot = take_snapshot,
		.data = flight,
	};
	int rc;

	if (settings->ranks) {
		hook_list_add_unasked(&hooks, "nccl");
		options.selection.hooks = &hooks;
	}
	if (!settings->enabled)
		flight_ranks_select(&options.selection);
	rc = capture_open(&options, &flight->capture, err);
	if (rc)
		return rc;
	rc = capture_run(flight->capture, err);
	capture_finish(flight->capture);
	capture_free(flight->capture);
	flight->capture = NULL;
	return flight->over ? 0 : rc;
}

/* Until what came of it was told and heard: a child that hangs in the disk is left behind. */
static void wait_for_writer(struct flight *flight)
{
	struct pollfd other = { .fd = flight->saver.socket };

	while (flight->saver.child && !flight->over && !poll(&other, 1, WRITER_MS))
		recorder_save_look(&flight->saver);
	poll(&other, 1, HEARD_MS);
}

int recorder_process_main(void)
{
	struct flight flight = { .consumer = { &ops },
		                 .saver = { .socket = WORKER_SOCKET,
		                            .spool = RECORDER_SPOOL,
		                            .settings = &flight.settings } };
	struct err err = { 0 };
	int rc;

	prctl(PR_SET_NAME, RECORDER_NAME);
	fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
	fcntl(RECORDER_SPOOL, F_SETFD, FD_CLOEXEC);
	hold_back_user_signals();
	worker_goes_first();
	if (receive_setup(&flight))
		return 1;
	flight.rules =
		call_rules_new(&flight.settings.rules, flight.settings.last_ns, fired, &flight);
	if (flight.settings.ranks && !flight.settings.gpu_times)
		flight.ranks = flight_ranks_new(&flight.settings, fired, &flight);
	if (flight.settings.enabled && !flight.settings.gpu_times)
		flight.why = top_why_new(TOP_WHY_BESIDE);
	flight.saver.writer = writer_new_window(
		&(struct writer_window){ .last_ns = flight.settings.last_ns,
	                                 .last_bytes = flight.settings.memory_bytes,
	                                 .shared = true,
	                                 .open = no_file });
	if (flight.settings.gpu_times)
		obey(&flight); /* what to write in the end came with the settings */
	rc = record(&flight, &err);
	if (rc && !flight.saver.child)
		notice(&flight, err.text);
	if (flight.settings.gpu_times && flight.saver.child)
		wait_for_writer(&flight);
	call_rules_free(flight.rules);
	flight_ranks_free(flight.ranks);
	top_why_free(flight.why);
	flight.saver.writer->ops->free(flight.saver.writer);
	return rc ? 1 : 0;
}
