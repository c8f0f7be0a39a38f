// SPDX-License-Identifier: MIT
#include "node/recorder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/inject.h"
#include "base/xalloc.h"
#include "node/recorder_inside.h"

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
