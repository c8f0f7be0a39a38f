// SPDX-License-Identifier: MIT
#include "node/recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/inject.h"
#include "base/array.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "node/error_patterns.h"
#include "node/recorder_inside.h"
#include "node/recorder_process.h"

/* ---- recorder settings --------------------------------------------------------------------- */

/* The sections of the configuration that are the flight recorder's. */

#define SECOND    1000000000ull
#define MIB       (1ull << 20)
#define TIB       (1ull << 40)
#define AT(field) offsetof(struct node_settings, recorder.field)

static const char *const full_words[] = { "oldest", "refuse", NULL };

/* A process has to start for it, and CUPTI in each that is measured. */
static const char *wrong_window(const char *value)
{
	uint64_t ns;

	return parse_duration_ns(value, &ns) && ns && ns < SECOND ? "is too short" : NULL;
}

static const struct config_row recorder_rows[] = {
	{ "enabled", CONFIG_FLAG, AT(enabled), "no", 0, 0, NULL,
	  "yes: every call is recorded, and the last seconds are held in memory", NULL },
	{ "last", CONFIG_DURATION, AT(last_ns), "30s", SECOND, 600 * SECOND, NULL,
	  "how much is held, from 1s to 10m", NULL },
	{ "memory", CONFIG_BYTES, AT(memory_bytes), "64MiB", MIB, 4096 * MIB, NULL,
	  "how large that may be, from 1MiB to 4GiB; less time is held then", NULL },
	{ "after", CONFIG_DURATION, AT(after_ns), "500ms", 0, 60 * SECOND, NULL,
	  "how long it goes on after a rule fired, up to 60s", NULL },
	{ "max_overhead", CONFIG_NUMBER, AT(max_overhead), "0", 0, 100, NULL,
	  "percent that recording may cost the busiest thread, from 1 to 100: results are given up "
	  "for it, and errors not seen then; 0: getters alone are",
	  NULL },
	{ "gpu_window", CONFIG_DURATION, AT(gpu_window_ns), "0", 0, 60 * SECOND, NULL,
	  "how long GPU times are measured after a rule fired, from 1s to 60s; 0: not at all",
	  wrong_window },
};

static const struct config_row spool_rows[] = {
	{ "directory", CONFIG_TEXT, AT(directory), "/var/lib/cuscope/spool", 0, 4000, NULL,
	  "the folder of recordings, which nobody else may write to", NULL },
	{ "bytes", CONFIG_BYTES, AT(spool_bytes), "1GiB", MIB, 1024 * TIB, NULL,
	  "how large all recordings may be, from 1MiB", NULL },
	{ "files", CONFIG_NUMBER, AT(spool_files), "100", 1, 10000, NULL,
	  "how many recordings there may be, from 1 to 10000", NULL },
	{ "when_full", CONFIG_WORD, AT(spool_refuse), "oldest", 0, 0, full_words,
	  "oldest: those go first; refuse: they stay, and no new ones are written", NULL },
	{ "keep_free", CONFIG_BYTES, AT(keep_free_bytes), "1GiB", 0, 1024 * TIB, NULL,
	  "what is to stay free of the disk", NULL },
};

static const char *wrong_errors(const char *value)
{
	struct error_patterns patterns;

	return error_patterns_parse(&patterns, value, NULL)
	               ? "is no list of fatal and FUNCTION:CODE (cudaMalloc*:2, *:719)"
	               : NULL;
}

static const struct config_row rules_rows[] = {
	{ "xid", CONFIG_FLAG, AT(xid), "yes", 0, 0, NULL, "yes: an Xid of a GPU", NULL },
	{ "error", CONFIG_TEXT, AT(errors), "fatal", 0, RULES_ERRORS_MAX - 1, NULL,
	  "failed calls: fatal, or FUNCTION:CODE with commas; nothing: none", wrong_errors },
	{ "memory", CONFIG_NUMBER, AT(memory_percent), "0", 0, 100, NULL,
	  "percent of a GPU's memory in use, from 1 to 100; 0: never", NULL },
	{ "idle", CONFIG_DURATION, AT(idle_ns), "0", 0, 86400 * SECOND, NULL,
	  "how long a GPU has nothing to do while a process has a context, up to 24h; 0: never",
	  NULL },
	{ "slow_step", CONFIG_NUMBER, AT(slow_step), "0", 0, 1000, NULL,
	  "how many times its median a step takes, up to 1000; 0: never", NULL },
	{ "step_least", CONFIG_DURATION, AT(step_least_ns), "10ms", 0, 3600 * SECOND, NULL,
	  "steps whose median is shorter are not judged, up to 1h", NULL },
	{ "step_range", CONFIG_TEXT, AT(step_range), "", 0, RULES_RANGE_MAX - 1, NULL,
	  "the NVTX range that is a step, a glob; nothing: steps are found in the launches", NULL },
	{ "leak", CONFIG_FLAG, AT(leak), "yes", 0, 0, NULL, "yes: a place is suspected to leak",
	  NULL },
	{ "late_rank", CONFIG_NUMBER, AT(late_rank), "0", 0, 100, NULL,
	  "percent of ten seconds that a rank's calls of collectives keep others waiting, with "
	  "[ranks], from 1 to 100; 0: never",
	  NULL },
	{ "request", CONFIG_FLAG, AT(request), "yes", 0, 0, NULL,
	  "yes: POST /record, which wants the token of [tls]", NULL },
	{ "cool_down", CONFIG_DURATION, AT(cool_down_ns), "5m", 0, 86400 * SECOND, NULL,
	  "between two recordings of a rule, up to 24h", NULL },
	{ "per_hour", CONFIG_NUMBER, AT(per_hour), "12", 0, 1000, NULL,
	  "recordings of all rules but requests in an hour, up to 1000", NULL },
};

static const struct config_row ranks_rows[] = {
	{ "enabled", CONFIG_FLAG, AT(ranks), "no", 0, 0, NULL,
	  "yes: NCCL's calls are recorded, and told which rank is late", NULL },
	{ "ras", CONFIG_FLAG, AT(ras), "yes", 0, 0, NULL,
	  "yes: NCCL's RAS (port 28028 of the programs' loopback) is asked which rank each is",
	  NULL },
	{ "series", CONFIG_NUMBER, AT(rank_series), "256", 0, RECORDER_RANKS_MOST, NULL,
	  "how many ranks, of all communicators, have series of their own, from 0 to 1024", NULL },
};

const struct config_table config_ranks = { "ranks", ranks_rows, ARRAY_SIZE(ranks_rows) };
const struct config_table config_recorder = { "recorder", recorder_rows,
	                                      ARRAY_SIZE(recorder_rows) };
const struct config_table config_spool = { "spool", spool_rows, ARRAY_SIZE(spool_rows) };
const struct config_table config_rules = { "rules", rules_rows, ARRAY_SIZE(rules_rows) };

/* All 0 before it is filled, so that two of them can be compared by their bytes. */
static void recorder_settings_make(struct recorder_settings *settings,
                                   const struct node_settings *node)
{
	const struct node_recorder *from = &node->recorder;
	struct rules_settings *rules = &settings->rules;

	memset(settings, 0, sizeof(*settings));
	settings->enabled = from->enabled;
	settings->last_ns = from->last_ns;
	settings->memory_bytes = from->memory_bytes;
	settings->after_ns = from->after_ns;
	settings->max_overhead = (double)from->max_overhead;
	settings->gpu_window_ns = from->gpu_window_ns;
	settings->spool.bytes = from->spool_bytes;
	settings->spool.files = from->spool_files;
	settings->spool.refuse = from->spool_refuse;
	settings->spool.keep_free_bytes = from->keep_free_bytes;
	rules->xid = from->xid;
	rules->leak = from->leak;
	rules->request = from->request;
	snprintf(rules->errors, sizeof(rules->errors), "%s", from->errors);
	snprintf(rules->step_range, sizeof(rules->step_range), "%s", from->step_range);
	rules->memory_percent = (double)from->memory_percent;
	rules->idle_ns = from->idle_ns;
	rules->slow_step = (double)from->slow_step;
	rules->step_least_ns = from->step_least_ns;
	rules->cool_down_ns = from->cool_down_ns;
	rules->per_hour = from->per_hour;
	rules->late_rank = (double)from->late_rank;
	settings->ranks = from->ranks;
	settings->ras = from->ras;
	settings->rank_series = from->rank_series;
}

/* ---- recorder gpu -------------------------------------------------------------------------- */

/*
 * Of the flight recorder: GPU times after a rule fired. A process of its own measures them for a
 * while, writes what it saw to the spool, and ends. So nothing of CUPTI is in any program before
 * that, and what the recorder holds is not touched. One of them at a time.
 */

#define BEGIN_NS 60000000000ull  /* to load programs, and enter processes */
#define WRITE_NS 130000000000ull /* to take agents out of them, and write */
#define HELD_NS  60000000000ull  /* longer than anything it measures */
#define AT_ONCE  64              /* messages in a turn */

static const char *const gpu_outcomes[RECORDER_GPU_COUNT] = {
	[RECORDER_GPU_WRITTEN] = "written",
	[RECORDER_GPU_BUSY] = "busy",
	[RECORDER_GPU_FAILED] = "failed",
};

const char *recorder_gpu_name(enum recorder_gpu outcome)
{
	return gpu_outcomes[outcome];
}

static void gpu_count(struct recorder *recorder, enum recorder_gpu outcome)
{
	LOCKED(&recorder->lock);
	recorder->figures.gpu_windows[outcome]++;
}

static void gpu_failed(struct recorder *recorder, const char *why)
{
	if (recorder->gpu.answered)
		return;
	recorder->gpu.answered = true;
	gpu_count(recorder, RECORDER_GPU_FAILED);
	recorder_say(recorder, "recorder: no GPU times were written for the rule %s: %s",
	             rule_name(recorder->gpu.rule), why);
}

/* ---- beginning ----------------------------------------------------------------------------- */

/* No rules: it is to measure, and to write once. */
static void settings_of(struct recorder_settings *settings, const struct recorder_settings *from)
{
	*settings = *from;
	memset(&settings->rules, 0, sizeof(settings->rules));
	settings->gpu_times = true;
	settings->last_ns = from->gpu_window_ns + HELD_NS;
}

void recorder_gpu_begin(struct recorder *recorder, const struct recorder_save *save,
                        uint64_t now_ns)
{
	struct recorder_message message = { .kind = RECORDER_SAVE };
	struct gpu_window *gpu = &recorder->gpu;
	struct recorder_settings settings;
	struct err err = { 0 };

	if (!recorder->settings.gpu_window_ns)
		return;
	if (gpu->child.worker.pid) {
		gpu_count(recorder, RECORDER_GPU_BUSY);
		return;
	}
	settings_of(&settings, &recorder->settings);
	gpu->rule = (enum rule)save->rule;
	gpu->answered = false;
	gpu->give_up_ns = now_ns + settings.gpu_window_ns + BEGIN_NS + WRITE_NS;
	if (recorder_child_start(&gpu->child, &settings, recorder->spool, &err)) {
		gpu_failed(recorder, err.text);
		return;
	}
	message.save = *save;
	message.save.last_ns = 0;
	snprintf(message.save.reason, sizeof(message.save.reason), "%.*s; GPU times after it",
	         RULES_TEXT_MAX, save->reason);
	recorder_send(gpu->child.worker.socket, &message);
}

/* ---- while it measures --------------------------------------------------------------------- */

/* It may end now. */
static void take_saved(struct recorder *recorder, const struct recorder_message *message,
                       uint64_t now_ns)
{
	const struct recorder_saved *saved = &message->saved;

	recorder_child_stop(&recorder->gpu.child, now_ns);
	if (saved->why) {
		gpu_failed(recorder, message->text);
		return;
	}
	if (recorder->gpu.answered)
		return;
	recorder->gpu.answered = true;
	gpu_count(recorder, RECORDER_GPU_WRITTEN);
	recorder_say(recorder, "recorder: %s/%s: %llu events with GPU times", recorder->path,
	             saved->name, (unsigned long long)saved->events);
	recorder->looked_ns = 0; /* the spool is another one now */
}

static void gpu_hear(struct recorder *recorder, uint64_t now_ns)
{
	struct gpu_window *gpu = &recorder->gpu;
	struct recorder_message message;

	for (unsigned n = 0; n < AT_ONCE && gpu->child.worker.socket >= 0; n++) {
		if (recorder_receive(gpu->child.worker.socket, &message))
			return;
		if (message.kind == RECORDER_STATE)
			gpu->child.state = message.state;
		else if (message.kind == RECORDER_SAVED)
			take_saved(recorder, &message, now_ns);
		else if (message.kind == RECORDER_NOTICE)
			recorder_say(recorder, "recorder: gpu_window: %s", message.text);
	}
}

void recorder_gpu_turn(struct recorder *recorder, uint64_t now_ns)
{
	struct gpu_window *gpu = &recorder->gpu;
	struct recorder_state state;

	if (!gpu->child.worker.pid)
		return;
	gpu_hear(recorder, now_ns);
	if (now_ns > gpu->give_up_ns) {
		gpu_failed(recorder, "it took too long");
		recorder_child_stop(&gpu->child, now_ns);
	}
	state = gpu->child.state;
	if (!recorder_child_ended(&gpu->child, now_ns))
		return;
	recorder_remember(recorder, &state);
	gpu_failed(recorder, "the process that measures them has ended");
}

void recorder_gpu_stop(struct recorder *recorder, uint64_t now_ns)
{
	recorder_child_stop(&recorder->gpu.child, now_ns);
}

bool recorder_gpu_stopped(struct recorder *recorder, uint64_t now_ns)
{
	return recorder_child_ended(&recorder->gpu.child, now_ns);
}

/* ---- recorder wire ------------------------------------------------------------------------- */

#define END(text) ((text)[sizeof(text) - 1] = '\0')

int recorder_send(int socket, const struct recorder_message *message)
{
	if (send(socket, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL) ==
	    sizeof(*message))
		return 0;
	return errno == EAGAIN || errno == ENOBUFS ? -EAGAIN : -EPIPE;
}

static bool is_something_there(int socket)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };

	return poll(&ready, 1, 0) > 0;
}

int recorder_receive(int socket, struct recorder_message *message)
{
	return recorder_receive_with(socket, message, NULL);
}

/* What is not of this size is of no use, and what sends it neither. */
int recorder_receive_with(int socket, struct recorder_message *message, int *fd)
{
	ssize_t n;

	if (fd)
		*fd = -1;
	if (!is_something_there(socket))
		return -EAGAIN;
	n = worker_receive(socket, message, sizeof(*message), fd);
	if (n != sizeof(*message)) {
		if (fd && *fd >= 0)
			close(*fd);
		return -EPIPE;
	}
	END(message->text);
	if (message->kind == RECORDER_SETUP) {
		END(message->setup.rules.errors);
		END(message->setup.rules.step_range);
	} else if (message->kind == RECORDER_SAVE)
		END(message->save.reason);
	else if (message->kind == RECORDER_SAVED)
		END(message->saved.name);
	else if (message->kind == RECORDER_STATE) {
		if (message->state.n_short > RECORDER_SHORT_MOST)
			return -EPIPE;
	} else if (message->kind == RECORDER_RANKS) {
		if (message->ranks.n > RECORDER_RANKS_EACH)
			return -EPIPE;
		for (uint32_t i = 0; i < message->ranks.n; i++)
			END(message->ranks.of[i].process);
	}
	return 0;
}

/* ---- recorder child ------------------------------------------------------------------------ */

#define PATIENCE_NS 5000000000ull /* for one that takes its probes away */

int recorder_child_start(struct recorder_child *child, const struct recorder_settings *settings,
                         int spool, struct err *err)
{
	struct recorder_message setup = { .kind = RECORDER_SETUP, .setup = *settings };
	char name[] = RECORDER_NAME, *argv[] = { name, NULL };
	const struct worker_program program = { .argv = argv,
		                                .environment = environ,
		                                .with = spool };
	int rc;

	*child = (struct recorder_child){ 0 };
	rc = worker_start(&child->worker, &program);
	if (rc)
		return err_set(err, rc, "starting the recorder: %s", strerror(-rc));
	recorder_send(child->worker.socket, &setup);
	return 0;
}

void recorder_child_stop(struct recorder_child *child, uint64_t now_ns)
{
	if (!child->worker.pid || child->worker.socket < 0)
		return;
	close(child->worker.socket);
	child->worker.socket = -1;
	child->ready = false;
	child->end_by_ns = now_ns + PATIENCE_NS;
}

bool recorder_child_ended(struct recorder_child *child, uint64_t now_ns)
{
	bool late = child->end_by_ns && now_ns >= child->end_by_ns;

	if (!child->worker.pid)
		return true;
	if (!(late ? worker_kill(&child->worker, 0, NULL) : worker_ended(&child->worker, 0, NULL)))
		return false;
	*child = (struct recorder_child){ .worker = child->worker };
	return true;
}

/* ---- recorder ------------------------------------------------------------------------------ */

static const char *const why_names[RECORDER_WHY_COUNT] = {
	[RECORDER_NOT_RUNNING] = "not_running",
	[RECORDER_BUSY] = "busy",
	[RECORDER_TIMEOUT] = "timeout",
	[RECORDER_CRASHED] = "crashed",
};

const char *recorder_why_name(enum recorder_why why)
{
	return why_names[why] ? why_names[why] : spool_why_name((enum spool_why)why);
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* Signals are for the capture's thread. */
static int start_thread(struct recorder *recorder)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&recorder->thread, NULL, recorder_run, recorder);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

static void release(struct recorder *recorder)
{
	if (recorder->wake >= 0)
		close(recorder->wake);
	if (recorder->spool >= 0)
		close(recorder->spool);
	rules_free(recorder->rules);
	quota_free(&recorder->rank_shares);
	free(recorder->ranks);
	buf_free(&recorder->account);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder->path);
	free(recorder);
}

static struct recorder *make(const struct node_settings *settings)
{
	struct recorder *recorder = xcalloc(1, sizeof(*recorder));

	recorder_settings_make(&recorder->settings, settings);
	recorder->path = xstrdup(settings->recorder.directory);
	recorder->rules = rules_new(&recorder->settings.rules);
	recorder->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	recorder->current = recorder->next = -1;
	recorder->rank_shares = quota_of_places(recorder->settings.rank_series);
	recorder->ranks = xcalloc(recorder->settings.rank_series + 1, sizeof(*recorder->ranks));
	recorder->gpu.child.worker = (struct worker){ .pidfd = -1, .socket = -1 };
	for (int i = 0; i < CHILDREN_MAX; i++)
		recorder->children[i].worker.socket = recorder->children[i].worker.pidfd = -1;
	pthread_mutex_init(&recorder->lock, NULL);
	return recorder;
}

/* What can be known before a rule fires. */
static int check_gpu_window(const struct node_recorder *settings, struct err *err)
{
	int rc;

	if (!settings->gpu_window_ns)
		return 0;
	if (settings->step_range[0])
		return err_set(err, EINVAL,
		               "gpu_window does not go with step_range: a process is measured by "
		               "one at a time, and step_range has all of them measured always");
	rc = inject_allowed(err);
	if (rc)
		err_prefix(err, "gpu_window, which enters programs that run");
	return rc;
}

int recorder_new(const struct node_settings *settings, struct recorder **out, struct err *err)
{
	struct recorder *recorder;
	int rc;

	*out = NULL;
	if (!settings->recorder.enabled && !settings->recorder.ranks)
		return 0;
	rc = !settings->recorder.enabled ? 0 : check_gpu_window(&settings->recorder, err);
	if (rc)
		return rc;
	recorder = make(settings);
	recorder->spool = settings->recorder.enabled ? spool_open(recorder->path, err) : -1;
	rc = settings->recorder.enabled && recorder->spool < 0 ? recorder->spool
	                                                       : start_thread(recorder);
	if (rc && (recorder->spool >= 0 || !settings->recorder.enabled))
		err_set(err, rc, "starting the recorder: %s", strerror(-rc));
	if (rc)
		release(recorder);
	else
		*out = recorder;
	return rc;
}

int recorder_check(const struct node_settings *settings, struct err *err)
{
	const struct node_recorder *recorder = &settings->recorder;
	int spool;

	if (!recorder->enabled)
		return 0;
	spool = spool_open(recorder->directory, err);
	if (spool < 0)
		return spool;
	close(spool);
	return check_gpu_window(recorder, err);
}

bool recorder_holds(const struct recorder *recorder)
{
	return recorder && recorder->settings.enabled;
}

static void wake(struct recorder *recorder)
{
	const uint64_t one = 1;

	if (write(recorder->wake, &one, sizeof(one)) < 0)
		return; /* it is awake */
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	pthread_mutex_lock(&recorder->lock);
	recorder->stop = true;
	pthread_mutex_unlock(&recorder->lock);
	wake(recorder);
	pthread_join(recorder->thread, NULL);
	release(recorder);
}

bool recorder_is_as(const struct recorder *recorder, const struct node_settings *settings)
{
	struct recorder_settings other;

	recorder_settings_make(&other, settings);
	if (!recorder)
		return !other.enabled && !other.ranks;
	return !strcmp(recorder->path, settings->recorder.directory) &&
	       !memcmp(&recorder->settings, &other, sizeof(other));
}

/* ---- what is told -------------------------------------------------------------------------- */

void recorder_tell(struct recorder *recorder, const struct rules_facts *facts)
{
	size_t n = facts->n_gpus < RULES_GPUS_MAX ? facts->n_gpus : RULES_GPUS_MAX;

	LOCKED(&recorder->lock);
	if (n)
		memcpy(recorder->gpus, facts->gpus, n * sizeof(*facts->gpus));
	recorder->facts = *facts;
	recorder->facts.gpus = NULL; /* those are in the copy */
	recorder->facts.n_gpus = n;
	recorder->figures.leaks_no_room = facts->leaks_no_room;
	recorder->told = true;
}

void recorder_look(struct recorder *recorder, bool looked)
{
	LOCKED(&recorder->lock);
	recorder->looked = looked;
}

bool recorder_account(struct recorder *recorder, uint64_t *number, struct buf *json)
{
	LOCKED(&recorder->lock);
	if (*number == recorder->n_accounts)
		return false;
	*number = recorder->n_accounts;
	buf_add(json, recorder->account.data ? recorder->account.data : "", recorder->account.len);
	return true;
}

void recorder_say(struct recorder *recorder, const char *fmt, ...)
{
	va_list ap;

	LOCKED(&recorder->lock);
	if (recorder->n_notices < NOTICES_MAX) {
		va_start(ap, fmt);
		vsnprintf(recorder->notices[recorder->n_notices++], NOTICE_TEXT, fmt, ap);
		va_end(ap);
	}
}

bool recorder_notice(struct recorder *recorder, char *text, size_t size)
{
	bool any;

	LOCKED(&recorder->lock);
	any = recorder->n_notices > 0;
	if (any) {
		snprintf(text, size, "%s", recorder->notices[0]);
		recorder->n_notices--;
		memmove(recorder->notices[0], recorder->notices[1],
		        recorder->n_notices * sizeof(recorder->notices[0]));
	}
	return any;
}

/* ---- requests ------------------------------------------------------------------------------ */

uint64_t recorder_request(struct recorder *recorder, uint64_t last_ns)
{
	uint64_t number;

	if (!recorder->settings.rules.request)
		return 0;
	pthread_mutex_lock(&recorder->lock);
	number = ++recorder->n_requests;
	recorder->requests[number % REQUESTS_MAX] =
		(struct request){ .number = number, .last_ns = last_ns };
	pthread_mutex_unlock(&recorder->lock);
	wake(recorder);
	return number;
}

enum recorder_answer recorder_request_answer(struct recorder *recorder, uint64_t number,
                                             char text[RECORDER_ANSWER_TEXT])
{
	const struct request *request = &recorder->requests[number % REQUESTS_MAX];
	enum recorder_answer answer = RECORDER_UNKNOWN;

	LOCKED(&recorder->lock);
	if (number && request->number == number) {
		answer = request->answer;
		memcpy(text, request->text, RECORDER_ANSWER_TEXT);
	}
	return answer;
}

void recorder_figures(struct recorder *recorder, struct recorder_figures *figures)
{
	LOCKED(&recorder->lock);
	*figures = recorder->figures;
}
