// SPDX-License-Identifier: MIT
/*
 * Of the flight recorder: GPU times after a rule fired. A process of its own measures them for a
 * while, writes what it saw to the spool, and ends. So nothing of CUPTI is in any program before
 * that, and what the recorder holds is not touched. One of them at a time.
 */
#include "node/recorder_inside.h"

#include <stdio.h>
#include <string.h>

#define BEGIN_NS 60000000000ull  /* to load programs, and enter processes */
#define WRITE_NS 130000000000ull /* to take agents out of them, and write */
#define HELD_NS  60000000000ull  /* longer than anything it measures */
#define AT_ONCE  64              /* messages in a turn */

static const char *const outcomes[RECORDER_GPU_COUNT] = {
	[RECORDER_GPU_WRITTEN] = "written",
	[RECORDER_GPU_BUSY] = "busy",
	[RECORDER_GPU_FAILED] = "failed",
};

const char *recorder_gpu_name(enum recorder_gpu outcome)
{
	return outcomes[outcome];
}

static void count(struct recorder *recorder, enum recorder_gpu outcome)
{
	pthread_mutex_lock(&recorder->lock);
	recorder->figures.gpu_windows[outcome]++;
	pthread_mutex_unlock(&recorder->lock);
}

static void failed(struct recorder *recorder, const char *why)
{
	if (recorder->gpu.answered)
		return;
	recorder->gpu.answered = true;
	count(recorder, RECORDER_GPU_FAILED);
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
		count(recorder, RECORDER_GPU_BUSY);
		return;
	}
	settings_of(&settings, &recorder->settings);
	gpu->rule = (enum rule)save->rule;
	gpu->answered = false;
	gpu->give_up_ns = now_ns + settings.gpu_window_ns + BEGIN_NS + WRITE_NS;
	if (recorder_child_start(&gpu->child, &settings, recorder->spool, &err)) {
		failed(recorder, err.text);
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
		failed(recorder, message->text);
		return;
	}
	if (recorder->gpu.answered)
		return;
	recorder->gpu.answered = true;
	count(recorder, RECORDER_GPU_WRITTEN);
	recorder_say(recorder, "recorder: %s/%s: %llu events with GPU times", recorder->path,
	             saved->name, (unsigned long long)saved->events);
	recorder->looked_ns = 0; /* the spool is another one now */
}

static void hear(struct recorder *recorder, uint64_t now_ns)
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
	hear(recorder, now_ns);
	if (now_ns > gpu->give_up_ns) {
		failed(recorder, "it took too long");
		recorder_child_stop(&gpu->child, now_ns);
	}
	state = gpu->child.state;
	if (!recorder_child_ended(&gpu->child, now_ns))
		return;
	recorder_remember(recorder, &state);
	failed(recorder, "the process that measures them has ended");
}

void recorder_gpu_stop(struct recorder *recorder, uint64_t now_ns)
{
	recorder_child_stop(&recorder->gpu.child, now_ns);
}

bool recorder_gpu_stopped(struct recorder *recorder, uint64_t now_ns)
{
	return recorder_child_ended(&recorder->gpu.child, now_ns);
}
