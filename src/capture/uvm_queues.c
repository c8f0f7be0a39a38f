// SPDX-License-Identifier: MIT
#include "capture/uvm_queues.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "capture/proc.h"
#include "probe/person.h"
#include "probe/uvm_queue.h"

#define USUAL_BYTES                                                                                \
	((size_t)4 << 20) /* 65,536 events; a GPU was seen to have 16,000 faults in 5 ms */
#define REASONS    8
#define SINGLES_NS 27 /* bits: 134 ms, as in the programs */
#define SINGLES    64
#define TRIES_MAX  64 /* of those that may be one: most processes have two */

/* A descriptor that is none costs 0.2 ms, and a process can make calls for it all day long. */
#define TRIES_SLOTS  256 /* by pid; those that share one share what it has */
#define TRIES_WINDOW 16  /* in SINGLES_NS */

struct tries {
	uint64_t window;
	unsigned n;
};

struct sum_row {
	struct driver_key key;
	struct driver_sum sum;
	UT_hash_handle hh;
};

struct uvm_queues {
	struct uvm_queue *queue[UVM_QUEUES + 1]; /* NULL at the end */
	pid_t pid[UVM_QUEUES];
	uint64_t person[UVM_QUEUES];
	uint64_t window[UVM_QUEUES], told[UVM_QUEUES]; /* single events of late */
	size_t n, bytes;
	struct quota of_queues;
	struct tries tries[TRIES_SLOTS];
	struct sum_row *rows;
	uint64_t read_ns;       /* the last time */
	uint64_t dropped, rest; /* dropped: of those that are gone */
	int reasons[REASONS];   /* errors that were told */
	size_t n_reasons;
	void (*notice)(void *data, const char *text);
	void *data;
};

struct uvm_queues *uvm_queues_new(size_t ring_bytes, void (*notice)(void *data, const char *text),
                                  void *data)
{
	struct uvm_queues *queues = xcalloc(1, sizeof(*queues));
	size_t most;

	queues->bytes = ring_bytes ? UVM_QUEUE_LEAST : USUAL_BYTES;
	while (queues->bytes < ring_bytes / 8 && queues->bytes < UVM_QUEUE_MOST)
		queues->bytes *= 2;
	most = UVM_QUEUES_BYTES / queues->bytes;
	if (most > UVM_QUEUES)
		most = UVM_QUEUES;
	queues->of_queues = (struct quota){
		.process = { UVM_QUEUES_PROCESS,
		             "it has two address spaces of which they are told already" },
		.user = { most / 2, "its user has half of all queues already" },
		.all = { most, "as many processes as there is room for have queues of the driver's "
		               "already" },
	};
	queues->notice = notice;
	queues->data = data;
	return queues;
}

static void free_rows(struct uvm_queues *queues)
{
	MAP_FREE(queues->rows, free);
}

void uvm_queues_free(struct uvm_queues *queues)
{
	if (!queues)
		return;
	for (size_t i = 0; i < queues->n; i++)
		uvm_queue_free(queues->queue[i]);
	free_rows(queues);
	quota_free(&queues->of_queues);
	free(queues);
}

/* ---- which ones ------------------------------------------------------------------------------ */

static void tell_once(struct uvm_queues *queues, pid_t pid, int code, const char *why)
{
	char text[1024];

	for (size_t i = 0; i < queues->n_reasons; i++) {
		if (queues->reasons[i] == code)
			return;
	}
	if (queues->n_reasons == REASONS)
		return;
	queues->reasons[queues->n_reasons++] = code;
	snprintf(text, sizeof(text),
	         "faults and migrations of managed memory of process %d are not told: %s", pid,
	         why);
	queues->notice(queues->data, text);
}

void uvm_queues_take(struct uvm_queues *queues, struct uvm_queue *queue, pid_t pid)
{
	size_t i = queues->n++;

	queues->queue[i] = queue;
	queues->pid[i] = pid;
	queues->person[i] = person_of_process(pid);
	quota_add(&queues->of_queues, queues->person[i], (uint32_t)pid, 1);
	queues->window[i] = queues->told[i] = 0;
}

static bool may_try(struct uvm_queues *queues, pid_t pid)
{
	struct tries *tries = &queues->tries[(unsigned)pid % TRIES_SLOTS];
	uint64_t window = queues->read_ns >> SINGLES_NS;

	if (tries->window != window)
		*tries = (struct tries){ .window = window };
	return tries->n++ < TRIES_WINDOW;
}

static void open_space(struct uvm_queues *queues, pid_t pid, int fd)
{
	const char *why =
		quota_refuses(&queues->of_queues, person_of_process(pid), (uint32_t)pid, 1);
	struct uvm_queue *queue;
	struct err err = { 0 };
	int r;

	if (why) {
		tell_once(queues, pid, -ENOSPC, why);
		return;
	}
	r = uvm_queue_open(pid, fd, queues->bytes, queues->queue, &queue, &err);
	if (!r)
		uvm_queues_take(queues, queue, pid);
	else if (r != -EPROTOTYPE && r != -EEXIST)
		tell_once(queues, pid, r, err.text);
}

void uvm_queues_add(struct uvm_queues *queues, pid_t pid, int fd)
{
	if (may_try(queues, pid))
		open_space(queues, pid, fd);
	else
		tell_once(queues, pid, -EAGAIN, "it asks for address spaces without an end");
}

/* Those that may be one, by what the links say: no descriptor of others is taken without need. */
static void look(struct uvm_queues *queues, pid_t pid,
                 void (*found)(struct uvm_queues *queues, pid_t pid, int fd))
{
	int32_t numbers[TRIES_MAX];
	ssize_t bytes = proc_descriptors(pid, "nvidia-uvm", numbers, sizeof(numbers));

	if (bytes == -ETIME)
		tell_once(queues, pid, -ETIME, "to look through its descriptors takes too long");
	for (ssize_t i = 0; i < bytes / (ssize_t)sizeof(*numbers); i++)
		found(queues, pid, numbers[i]);
}

void uvm_queues_look(struct uvm_queues *queues, pid_t pid)
{
	look(queues, pid, open_space);
}

static void let_go(struct uvm_queues *queues, size_t i)
{
	size_t last = --queues->n;

	quota_give(&queues->of_queues, queues->person[i], (uint32_t)queues->pid[i], 1);
	queues->dropped += uvm_queue_dropped(queues->queue[i]);
	uvm_queue_free(queues->queue[i]);
	queues->queue[i] = queues->queue[last];
	queues->pid[i] = queues->pid[last];
	queues->person[i] = queues->person[last];
	queues->window[i] = queues->window[last];
	queues->told[i] = queues->told[last];
	queues->queue[last] = NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct sum_row *row_of(struct uvm_queues *queues, const struct driver_key *key)
{
	struct sum_row *row = MAP_FIND(queues->rows, key);

	if (row || HASH_COUNT(queues->rows) >= DRIVER_ROWS + DRIVER_ROWS_FEW)
		return row;
	if (key->block && HASH_COUNT(queues->rows) >= DRIVER_ROWS)
		return NULL;
	return MAP_ADD(queues->rows, key, key);
}

static unsigned size_class(uint64_t bytes)
{
	unsigned class = 0;

	while (class < DRIVER_SIZES - 1 && bytes > 4096ull << class)
		class ++;
	return class;
}

static void add_to_sum(struct uvm_queues *queues, struct driver_key *key,
                       const struct uvm_event *event)
{
	uint64_t ns = event->end_ns > event->begin_ns ? event->end_ns - event->begin_ns : 0;
	uint64_t at_ns = event->end_ns ? event->end_ns : event->begin_ns;
	struct sum_row *row = row_of(queues, key);
	struct driver_sum *sum;

	if (!row) { /* as the programs do: without the place, before it is left out */
		key->block = 0;
		row = row_of(queues, key);
	}
	if (!row) {
		queues->rest++;
		return;
	}
	sum = &row->sum;
	sum->count++;
	sum->bytes += event->bytes;
	sum->ns += ns;
	if (!sum->first || event->address < sum->first)
		sum->first = event->address;
	if (event->address > sum->last)
		sum->last = event->address;
	if (at_ns > sum->last_ns)
		sum->last_ns = at_ns;
	sum->sizes[size_class(event->bytes ? event->bytes : ns / 1000)]++;
}

struct reading {
	struct uvm_queues *queues;
	size_t i;
	uint64_t now_ns;
	void (*each)(void *data, const struct wire_driver_event *event);
	void *data;
};

static void take_event(void *data, const struct uvm_event *event)
{
	struct reading *reading = data;
	struct uvm_queues *queues = reading->queues;
	size_t i = reading->i;
	struct driver_key key;
	struct wire_driver_event single = { .begin_ns = event->begin_ns,
		                            .cause = event->cause,
		                            .src = event->src,
		                            .dst = event->dst,
		                            .address = event->address,
		                            .bytes = event->bytes,
		                            .posted_ns = event->end_ns };

	memset(&key, 0, sizeof(key)); /* it is compared as bytes */
	key.tgid = (uint32_t)queues->pid[i];
	key.kind = event->kind;
	key.cause = event->cause;
	key.src = event->src;
	key.dst = event->dst;
	key.block = event->address >> DRIVER_BLOCK;
	add_to_sum(queues, &key, event);
	if (queues->window[i] != reading->now_ns >> SINGLES_NS) {
		queues->window[i] = reading->now_ns >> SINGLES_NS;
		queues->told[i] = 0;
	}
	if (queues->told[i]++ >= SINGLES)
		return;
	single.head.type = WIRE_DRIVER_EVENT;
	single.head.hook = event->kind;
	single.head.tgid = (uint32_t)queues->pid[i];
	single.head.tid = event->tid;
	/* Its place in the order. What it is told of when the GPU was looked at is of before. */
	single.head.time_ns = event->end_ns > queues->read_ns ? event->end_ns : reading->now_ns;
	reading->each(reading->data, &single);
}

void uvm_queues_read(struct uvm_queues *queues, uint64_t now_ns, bool last,
                     void (*each)(void *data, const struct wire_driver_event *event), void *data)
{
	struct reading reading = { queues, 0, now_ns, each, data };
	pid_t again[UVM_QUEUES];
	size_t n = 0;

	for (size_t i = 0; i < queues->n;) {
		bool closed = uvm_queue_is_closed(queues->queue[i]);
		bool over = closed || uvm_queue_is_over(queues->queue[i]);

		reading.i = i;
		if (over || last)
			uvm_queue_flush(queues->queue[i]);
		uvm_queue_read(queues->queue[i], take_event, &reading);
		if (closed)
			again[n++] = queues->pid[i];
		if (over)
			let_go(queues, i);
		else
			i++;
	}
	while (n) /* it may have the address space at another number */
		look(queues, again[--n], uvm_queues_add);
	queues->read_ns = now_ns;
}

void uvm_queues_sums(struct uvm_queues *queues,
                     void (*each)(void *data, const struct driver_key *key,
                                  const struct driver_sum *sum),
                     void *data)
{
	struct sum_row *row, *next;

	HASH_ITER (hh, queues->rows, row, next)
		each(data, &row->key, &row->sum);
	free_rows(queues);
}

uint64_t uvm_queues_dropped(const struct uvm_queues *queues)
{
	uint64_t sum = queues->dropped;

	for (size_t i = 0; i < queues->n; i++)
		sum += uvm_queue_dropped(queues->queue[i]);
	return sum;
}

uint64_t uvm_queues_rest(const struct uvm_queues *queues)
{
	return queues->rest;
}
