/* SPDX-License-Identifier: MIT */
/*
 * The reader of the sums that the kernel keeps. From the records that still travel it learns which
 * processes, kernels and stacks the sums are of. It takes the sums of a process in when it ends,
 * and makes the pages of watch.h.
 */
#pragma once

#include "bpf/wire.h"
#include "capture/pipeline.h"
#include "capture/watch/watch.h"

struct watcher;

struct watcher_options {
	const struct watch_options *watch;
	struct programs *programs;
	struct modules *modules;
	struct budget *budget; /* of the numbers of stacks that are known; may be NULL */
	struct pipeline *pipeline;
	bool inside; /* calls may be sent rather than summed up in the kernel */
	/* Adds what was lost elsewhere than in the programs; may be NULL. */
	void (*lost)(void *data, uint64_t lost[]);
	/* What the capture tells of itself; may be NULL. */
	void (*of_capture)(void *data, struct watch_page *page);
	void *data;
};

struct watcher *watcher_new(const struct watcher_options *options);
void watcher_free(struct watcher *watcher);

void watcher_begin(struct watcher *watcher, const struct run_info *run);

/* Around what the pipeline does with a record. True from the first: it is not for the pipeline. */
bool watcher_before(struct watcher *watcher, const struct wire_head *record);
void watcher_after(struct watcher *watcher, const struct wire_head *record);

/* Those that have not ended, as far as was told. */
typedef void (*watcher_running_fn)(void *data, uint32_t pid);
void watcher_each_running(struct watcher *watcher, watcher_running_fn each, void *data);
/* Whether one of them has this number and is older than that. */
bool watcher_runs_before(struct watcher *watcher, uint32_t pid, uint64_t born_ns);

/* With `inside`: the programs send the calls of a process from now on. */
void watcher_marked(struct watcher *watcher, pid_t pid, uint64_t now_ns);

/* Of watch_options.forget: stacks that nobody needs any more are given back, of this one. */
struct sampler;
void watcher_renews(struct watcher *watcher, struct sampler *sampler);

/* The stack that the programs call `id` in the process with this number. */
void watcher_stack(struct watcher *watcher, uint32_t tgid, uint64_t id, const struct stack *stack);

/* A page, if it is time for one; and the last one. 0, or what page() said. */
int watcher_tick(struct watcher *watcher, uint64_t now_ns, struct err *err);
int watcher_end(struct watcher *watcher, const struct run_info *run, struct err *err);
