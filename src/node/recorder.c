// SPDX-License-Identifier: MIT
#include "node/recorder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/inject.h"
#include "base/xalloc.h"
#include "node/recorder_inside.h"
#include "node/recorder_process.h"

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
	pthread_mutex_lock(&recorder->lock);
	recorder->figures.gpu_windows[outcome]++;
	pthread_mutex_unlock(&recorder->lock);
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

/* What is not of this size is of no use, and what sends it neither. */
int recorder_receive(int socket, struct recorder_message *message)
{
	ssize_t n = recv(socket, message, sizeof(*message), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n != sizeof(*message))
		return -EPIPE;
	END(message->text);
	if (message->kind == RECORDER_SETUP) {
		END(message->setup.rules.errors);
		END(message->setup.rules.step_range);
	} else if (message->kind == RECORDER_SAVE)
		END(message->save.reason);
	else if (message->kind == RECORDER_SAVED)
		END(message->saved.name);
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
	if (!settings->recorder.enabled)
		return 0;
	rc = check_gpu_window(&settings->recorder, err);
	if (rc)
		return rc;
	recorder = make(settings);
	recorder->spool = spool_open(recorder->path, err);
	rc = recorder->spool < 0 ? recorder->spool : start_thread(recorder);
	if (rc && recorder->spool >= 0)
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
		return !other.enabled;
	return !strcmp(recorder->path, settings->recorder.directory) &&
	       !memcmp(&recorder->settings, &other, sizeof(other));
}

/* ---- what is told -------------------------------------------------------------------------- */

void recorder_tell(struct recorder *recorder, const struct rules_facts *facts)
{
	size_t n = facts->n_gpus < RULES_GPUS_MAX ? facts->n_gpus : RULES_GPUS_MAX;

	pthread_mutex_lock(&recorder->lock);
	if (n)
		memcpy(recorder->gpus, facts->gpus, n * sizeof(*facts->gpus));
	recorder->facts = (struct rules_facts){ .n_gpus = n, .leaks = facts->leaks };
	snprintf(recorder->leak, sizeof(recorder->leak), "%s", facts->leak ? facts->leak : "");
	recorder->figures.leaks_no_room = facts->leaks_no_room;
	recorder->told = true;
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_say(struct recorder *recorder, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&recorder->lock);
	if (recorder->n_notices < NOTICES_MAX) {
		va_start(ap, fmt);
		vsnprintf(recorder->notices[recorder->n_notices++], NOTICE_TEXT, fmt, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&recorder->lock);
}

bool recorder_notice(struct recorder *recorder, char *text, size_t size)
{
	bool any;

	pthread_mutex_lock(&recorder->lock);
	any = recorder->n_notices > 0;
	if (any) {
		snprintf(text, size, "%s", recorder->notices[0]);
		recorder->n_notices--;
		memmove(recorder->notices[0], recorder->notices[1],
		        recorder->n_notices * sizeof(recorder->notices[0]));
	}
	pthread_mutex_unlock(&recorder->lock);
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

	pthread_mutex_lock(&recorder->lock);
	if (number && request->number == number) {
		answer = request->answer;
		memcpy(text, request->text, RECORDER_ANSWER_TEXT);
	}
	pthread_mutex_unlock(&recorder->lock);
	return answer;
}

void recorder_figures(struct recorder *recorder, struct recorder_figures *figures)
{
	pthread_mutex_lock(&recorder->lock);
	*figures = recorder->figures;
	pthread_mutex_unlock(&recorder->lock);
}
