/* SPDX-License-Identifier: MIT */
/*
 * What the golden traces are made with: events are put down in any order, and are sorted and
 * numbered at the end as a capture would have done. A mark is a small number that a call is given
 * so that activities can name it; 0 is none. Times are in microseconds after the begin of the run.
 * What ran on the GPU and ranges come when their buffer is emptied, as they do while a program is
 * traced.
 */
#ifndef TESTS_GOLDEN_SCENE_H
#define TESTS_GOLDEN_SCENE_H

#include "../unit/trace_events.h"

#ifndef MARKS
#define MARKS 1024
#endif

struct scene {
	struct kept_list list;
	const struct process *process; /* whose the next events are */
	uint32_t tid;
	uint64_t mark;           /* of the next call, taken with it */
	uint64_t flush_ns;       /* how often activities and ranges become known; 0: at once */
	uint64_t numbers[MARKS]; /* correlations, by mark */
};

/* ---- putting down -------------------------------------------------------------------------- */

static inline void put_event(struct scene *scene, const struct event *event)
{
	uint64_t known_ns = event->time_ns;

	if (scene->flush_ns && (event->activity || event->range))
		known_ns += scene->flush_ns - known_ns % scene->flush_ns;
	keep_event(&scene->list, event);
	scene->list.at[scene->list.count - 1].known_ns = known_ns;
}

static inline void put_call(struct scene *scene, struct call call)
{
	struct event event = { .type = call_event_type(&call),
		               .time_ns = call.end_ns ? call.end_ns : call.begin_ns,
		               .process = scene->process,
		               .tid = scene->tid,
		               .call = &call };

	call.correlation = scene->mark;
	scene->mark = 0;
	put_event(scene, &event);
}

/* The call of the driver that the last call made inside: from 1 us after its begin. */
static inline void put_inner(struct scene *scene, const char *function)
{
	struct call outer = scene->list.at[scene->list.count - 1].call, call;

	call = call_at(function, 0, 0);
	call.begin_ns = outer.begin_ns + 1000;
	call.end_ns = 0;
	call.flags = CALL_NESTED | CALL_NO_RETURN | (outer.flags & CALL_CAPTURED);
	call.depth = outer.depth + 1;
	call.kernel = outer.kernel;
	call.args = outer.args;
	call.args.n_args = call_at(function, 0, 0).args.n_args;
	memset(call.args.arg, 0, sizeof(call.args.arg));
	set_args_of_type(&call, T_KERNEL, call.args.handle);
	set_args_of_type(&call, T_STREAM, call.args.stream);
	set_args_of_type(&call, T_DST, call.args.address);
	set_args_of_type(&call, T_SRC, call.args.source);
	set_args_of_type(&call, T_BYTES, call.args.bytes);
	put_call(scene, call);
}

static inline void put_other(struct scene *scene, enum event_type type, double at_us,
                             const char *thread, int32_t priority)
{
	struct thread about = { .priority = priority };
	struct event event = { .type = type,
		               .time_ns = US(at_us),
		               .process = scene->process,
		               .tid = thread ? scene->tid : scene->process->pid };

	if (thread) {
		snprintf(about.comm, sizeof(about.comm), "%s", thread);
		event.thread = &about;
	}
	put_event(scene, &event);
}

/* The next events are of this thread, which is seen for the first time. */
static inline void put_thread(struct scene *scene, double at_us, uint32_t tid, const char *name,
                              int32_t priority)
{
	scene->tid = tid;
	put_other(scene, EVENT_THREAD, at_us, name, priority);
}

static inline void put_process(struct scene *scene, double at_us, const struct process *process)
{
	scene->process = process;
	scene->tid = process->pid;
	put_other(scene, EVENT_PROCESS, at_us, NULL, 0);
}

/* `activity.correlation` is a mark. */
static inline void put_activity(struct scene *scene, struct activity activity, double begin_us,
                                double duration_us)
{
	struct event event = { .type = EVENT_ACTIVITY,
		               .process = scene->process,
		               .tid = scene->process->pid,
		               .activity = &activity };

	activity.begin_ns = US(begin_us);
	activity.end_ns = event.time_ns = US(begin_us + duration_us);
	put_event(scene, &event);
}

/* `range.correlation` is a mark. Of the thread whose turn it is, but waits: of none. */
static inline void put_range(struct scene *scene, struct range range, double begin_us,
                             double duration_us)
{
	struct event event = { .type = EVENT_RANGE,
		               .process = scene->process,
		               .tid = range.kind == RANGE_SYNC || range.kind == RANGE_NOT_MEASURED
		                              ? 0
		                              : scene->tid,
		               .range = &range };

	range.begin_ns = US(begin_us);
	range.end_ns = event.time_ns = US(begin_us + duration_us);
	put_event(scene, &event);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* By when it is known, then by time, and as they were put down where that is the same. */
static inline int kept_order(const void *x, const void *y)
{
	const struct kept *a = *(const struct kept *const *)x, *b = *(const struct kept *const *)y;

	if (a->known_ns != b->known_ns)
		return a->known_ns < b->known_ns ? -1 : 1;
	if (a->event.time_ns != b->event.time_ns)
		return a->event.time_ns < b->event.time_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

static inline void sort_scene(struct scene *scene)
{
	size_t n = scene->list.count;
	const struct kept **order = malloc((n + 1) * sizeof(*order));
	struct kept_list sorted = { 0 };

	for (size_t i = 0; i < n; i++)
		order[i] = &scene->list.at[i];
	qsort(order, n, sizeof(*order), kept_order);
	sorted.at = malloc((n + 1) * sizeof(*sorted.at));
	for (size_t i = 0; i < n; i++)
		sorted.at[sorted.count++] = *order[i];
	free(order);
	free(scene->list.at);
	scene->list = sorted;
}

static inline void number_calls(struct scene *scene)
{
	uint64_t last[64] = { 0 };

	for (size_t i = 0; i < scene->list.count; i++) {
		struct kept *kept = &scene->list.at[i];
		uint64_t mark = kept->call.correlation;

		if (kept->event.type != EVENT_CALL)
			continue;
		kept->call.correlation = ++last[kept->event.process->id];
		if (mark)
			scene->numbers[mark] = kept->call.correlation;
	}
	for (size_t i = 0; i < scene->list.count; i++) {
		struct kept *kept = &scene->list.at[i];

		kept->activity.correlation = scene->numbers[kept->activity.correlation];
		kept->range.correlation = scene->numbers[kept->range.correlation];
	}
}

static inline void write_scene(struct scene *scene, const struct run_info *run, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	sort_scene(scene);
	number_calls(scene);
	write_list(fd, run, &scene->list);
	close(fd);
	free(scene->list.at);
	memset(scene, 0, sizeof(*scene));
}

#endif
