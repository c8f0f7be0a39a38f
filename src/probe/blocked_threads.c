// SPDX-License-Identifier: MIT
#include "probe/blocked_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/xalloc.h"

#define OLDER_MAX 16384 /* threads that were there before the begin */

struct older {
	uint32_t tgid, tid;
};

struct blocked_threads {
	struct programs *programs;
	int links[8]; /* -1: not attached */
	uint64_t begin_ns, end_ns;
	struct older *older;
	size_t n_older, without_room;
};

struct blocked_threads *blocked_threads_new(struct programs *programs)
{
	struct blocked_threads *threads = xcalloc(1, sizeof(*threads));

	threads->programs = programs;
	memset(threads->links, -1, sizeof(threads->links));
	return threads;
}

void blocked_threads_free(struct blocked_threads *threads)
{
	if (!threads)
		return;
	blocked_threads_end(threads);
	free(threads->older);
	free(threads);
}

void blocked_threads_expect(struct blocked_threads *threads, pid_t pid)
{
	char program[1];
	DIR *list;
	pid_t tid;

	if (process_look(pid, PROCESS_LINK, "exe", program, sizeof(program)) < 0)
		return; /* threads of the kernel have none */
	list = process_list(pid);
	while ((tid = process_next(list))) {
		if (threads->n_older == OLDER_MAX) {
			threads->without_room++;
			continue;
		}
		if (!threads->older)
			threads->older = xcalloc(OLDER_MAX, sizeof(*threads->older));
		threads->older[threads->n_older++] = (struct older){ (uint32_t)pid, (uint32_t)tid };
	}
	process_list_end(&list);
}

size_t blocked_threads_older(const struct blocked_threads *threads, size_t *without_room)
{
	*without_room = threads->without_room;
	return threads->n_older;
}

int blocked_threads_begin(struct blocked_threads *threads, struct err *err)
{
	static const char *const programs[ARRAY_SIZE(threads->links)][2] = {
		{ "irq_handler_exit", "on_interrupt_end" },
		{ "irq_handler_entry", "on_interrupt" },
		{ "hrtimer_expire_exit", "on_timer_end" },
		{ "hrtimer_expire_entry", "on_timer" },
		{ "softirq_exit", "on_softirq_end" },
		{ "softirq_entry", "on_softirq" },
		/* which the programs name themselves */
		{ NULL, "on_waking" },
		{ NULL, "on_switch" },
	};

	threads->begin_ns = clock_now_ns();
	if (threads->n_older) /* else targets begin later, and what held them is not of interest */
		programs_state(threads->programs)->blocked_begin_ns = threads->begin_ns;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		threads->links[i] = bpf_raw_tracepoint_open(
			programs[i][0], programs_fd(threads->programs, programs[i][1]));
		if (threads->links[i] < 0)
			return err_set(err, errno, "attaching %s to the kernel's tracepoint: %s",
			               programs[i][1], strerror(errno));
	}
	return 0;
}

void blocked_threads_end(struct blocked_threads *threads)
{
	for (size_t i = ARRAY_SIZE(threads->links); i--;) {
		if (threads->links[i] >= 0)
			close(threads->links[i]);
		threads->links[i] = -1;
	}
	if (!threads->end_ns)
		threads->end_ns = clock_now_ns();
}

/* ---- what has not come to its end ------------------------------------------------------------ */

struct telling {
	const struct blocked_threads *threads;
	void (*each)(void *data, const struct wire_blocked *record);
	void *data;
};

static void tell(const struct telling *telling, const struct older *thread,
                 struct wire_blocked record)
{
	record.head.type = WIRE_BLOCKED;
	record.head.tgid = thread->tgid;
	record.head.tid = thread->tid;
	record.head.time_ns = telling->threads->end_ns;
	if (record.count)
		telling->each(telling->data, &record);
}

static void tell_thread(const struct telling *telling, uint32_t tid,
                        const struct wire_thread *thread)
{
	const struct older of = { thread->tgid, tid };
	const struct wire_blocking *blocking = &thread->blocking;
	uint64_t since_ns = blocking->since_ns, end_ns = telling->threads->end_ns;

	tell(telling, &of,
	     (struct wire_blocked){ .weight_ns = blocking->brief.ns,
	                            .count = blocking->brief.count,
	                            .how = WIRE_BLOCKED_BRIEF });
	tell(telling, &of,
	     (struct wire_blocked){ .weight_ns = blocking->skipped.ns,
	                            .count = blocking->skipped.count,
	                            .how = WIRE_BLOCKED_SKIPPED });
	tell(telling, &of,
	     (struct wire_blocked){ .weight_ns = blocking->cpu.ns,
	                            .count = blocking->cpu.count,
	                            .how = WIRE_BLOCKED_BRIEF,
	                            .wait = { .flags = WIRE_WAIT_CPU } });
	if (since_ns && since_ns < end_ns && !blocking->preempted)
		tell(telling, &of,
		     (struct wire_blocked){ .stack = blocking->stack,
		                            .weight_ns = end_ns - since_ns,
		                            .count = 1,
		                            .how = WIRE_BLOCKED_STILL,
		                            .wait = blocking->wait });
}

/* Whether it is there, and does not run: who ran all the time was never switched away from. */
static bool is_blocked(const struct older *thread)
{
	struct process_stat stat;

	return process_stat_read((pid_t)thread->tgid, (pid_t)thread->tid, &stat) &&
	       strchr("SDTt", stat.state);
}

static void tell_older(const struct telling *telling, int map, struct wire_thread *thread)
{
	const struct blocked_threads *threads = telling->threads;

	for (size_t i = 0; i < threads->n_older; i++) {
		const struct older *older = &threads->older[i];

		if (bpf_map_lookup_elem(map, &older->tid, thread) == 0 &&
		    thread->tgid == older->tgid)
			continue;
		if (is_blocked(older))
			tell(telling, older,
			     (struct wire_blocked){ .weight_ns =
			                                    threads->end_ns - threads->begin_ns,
			                            .count = 1,
			                            .how = WIRE_BLOCKED_BEFORE });
	}
}

void blocked_threads_rest(struct blocked_threads *threads,
                          void (*each)(void *data, const struct wire_blocked *record), void *data)
{
	const struct telling telling = { threads, each, data };
	AT_END(at_end_free) struct wire_thread *thread = xmalloc(sizeof(*thread));
	int map = programs_map(threads->programs, "threads");
	size_t n;
	uint32_t *tids = programs_threads(threads->programs, &n);

	for (size_t i = 0; i < n; i++) {
		if (bpf_map_lookup_elem(map, &tids[i], thread) == 0)
			tell_thread(&telling, tids[i], thread);
	}
	tell_older(&telling, map, thread);
	free(tids);
}
