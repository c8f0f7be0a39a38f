// SPDX-License-Identifier: MIT
/*
 * From records in rings to a trace file, on one core: what `cuscope record` does but for the eBPF
 * side, which runs on the cores of the traced threads.
 *
 *   pipeline WORKLOAD EVENTS FILE [STAGE]     one line of JSON
 *
 * STAGE ends the way early, to see what each part costs: order, stream, or all (the default); text
 * counts what bpftrace would print. The time for filling the rings is left out. Then the file is
 * read, once to the end and once into the analysis that the summary is made of.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "report/summary/summary.h"
#include "base/xalloc.h"
#include "capture/order.h"
#include "capture/pipeline.h"
#include "probe/rings.h"
#include "trace/reader.h"
#include "trace/writer.h"
#include "workload.h"

#define RINGS      4
#define RING_BYTES (4u << 20)
#define BATCH      20000 /* records between two readings: 10 ms at 2 million a second */

/* ---- rings, as the kernel fills them ------------------------------------------------------- */

struct feeder {
	struct ring *ring;
	char *memory;
	unsigned long at;
};

static void feeder_open(struct feeder *feeder)
{
	size_t page = (size_t)getpagesize();
	int fd = memfd_create("ring", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)(2 * page + 2 * RING_BYTES)))
		abort();
	feeder->memory =
		mmap(NULL, 2 * page + 2 * RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	feeder->ring = ring_open(fd, RING_BYTES);
	if (feeder->memory == MAP_FAILED || !feeder->ring)
		abort();
}

static void feeder_put(struct feeder *feeder, const void *record, uint32_t bytes)
{
	size_t page = (size_t)getpagesize();
	char *at = feeder->memory + 2 * page + (feeder->at & (RING_BYTES - 1));
	uint32_t head[2] = { bytes, 0 };

	memcpy(at, head, sizeof(head));
	memcpy(at + sizeof(head), record, bytes);
	feeder->at += (bytes + BPF_RINGBUF_HDR_SZ + 7) & ~7ul;
	*(unsigned long *)(feeder->memory + page) = feeder->at;
}

/* ---- the run ------------------------------------------------------------------------------- */

struct measured {
	struct feeder feeders[RINGS];
	struct rings *rings;
	struct order *order;
	struct pipeline *pipeline;
	struct consumer *consumer;
	struct wire_state state;
	struct err err;
	bool order_only;
	double busy_s;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int take(void *data, const struct wire_head *record)
{
	struct measured *p = data;

	return p->order_only ? 0 : pipeline_record(p->pipeline, record, &p->err);
}

/* A consumer that does nothing. */
static int no_run(struct consumer *self, const struct run_info *run, struct err *err)
{
	return 0;
}

static int no_event(struct consumer *self, const struct event *event, struct err *err)
{
	return 0;
}

static void no_free(struct consumer *self)
{
}

static const struct consumer_ops nothing_ops = {
	.begin = no_run, .event = no_event, .end = no_run, .free = no_free
};
static struct consumer nothing = { &nothing_ops };

static void check(int r, const struct err *err)
{
	if (!r)
		return;
	fprintf(stderr, "pipeline: %s\n", err->text);
	exit(1);
}

static uint64_t fill_rings(struct measured *p, struct workload *workload, uint64_t events)
{
	uint64_t last_ns = 0;

	while (events--) {
		unsigned thread;
		uint32_t bytes;
		const struct wire_head *record = workload_next(workload, &bytes, &thread);

		feeder_put(&p->feeders[thread % RINGS], record, bytes);
		last_ns = record->time_ns;
	}
	return last_ns;
}

static void run(struct measured *p, struct workload *workload, uint64_t events)
{
	struct run_info info = { .begin_ns = 1, .estimate_scale = 1, .returns = true };
	double begin;

	check(pipeline_begin(p->pipeline, &info, &p->err), &p->err);
	while (events) {
		uint64_t n = events < BATCH ? events : BATCH;
		uint64_t last_ns = fill_rings(p, workload, n);

		events -= n;
		info.end_ns = last_ns;
		begin = now_s();
		check(order_read(p->order, p->rings, last_ns - 8000000), &p->err);
		check(pipeline_flush(p->pipeline, &p->err), &p->err);
		p->busy_s += now_s() - begin;
	}
	begin = now_s();
	check(order_finish(p->order), &p->err);
	check(pipeline_end(p->pipeline, &info, &p->err), &p->err);
	p->busy_s += now_s() - begin;
}

static void count_text(struct workload *workload, uint64_t events)
{
	unsigned long long bytes = 0, with_arguments = 0;

	for (uint64_t i = 0; i < events; i++) {
		unsigned thread;
		uint32_t length;
		const struct wire_head *record = workload_next(workload, &length, &thread);

		bytes += workload_text(record, false);
		with_arguments += workload_text(record, true);
	}
	printf("{\"records\": %llu, \"text_bytes\": %llu, \"text_bytes_with_arguments\": %llu}\n",
	       (unsigned long long)events, bytes, with_arguments);
}

static long status_kib(const char *field)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, field, strlen(field)))
			kib = atol(line + strlen(field));
	}
	if (f)
		fclose(f);
	return kib;
}

static double read_into(const char *path, struct consumer *consumer)
{
	struct trace_file *file;
	struct err err = { 0 };
	double begin = now_s();

	check(trace_open(path, &file, &err), &err);
	check(trace_read(file, NULL, &consumer, 1, &err), &err);
	trace_close(file);
	return now_s() - begin;
}

int main(int argc, char **argv)
{
	static struct measured p;
	struct pipeline_options options = { .state = &p.state,
		                            .consumers = &p.consumer,
		                            .n_consumers = 1 };
	const char *stage = argc > 4 ? argv[4] : "all";
	uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	struct writer_stats stats = { 0 };
	struct workload *workload;
	double read_s, summary_s;
	int fd;

	if (argc < 4 || !events)
		return 2;
	fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return 1;
	p.rings = rings_new();
	for (unsigned i = 0; i < RINGS; i++) {
		feeder_open(&p.feeders[i]);
		rings_add(p.rings, p.feeders[i].ring);
	}
	workload = workload_new(argv[1]);
	if (!strcmp(stage, "text")) {
		count_text(workload, events);
		return 0;
	}
	p.order_only = !strcmp(stage, "order");
	p.consumer = strcmp(stage, "all") ? &nothing : writer_new(fd, argv[3]);
	p.pipeline = pipeline_new(&options);
	p.order = order_new(take, &p);
	run(&p, workload, events);
	printf("{\"workload\": \"%s\", \"stage\": \"%s\", \"records\": %llu, \"busy_s\": %.4f, "
	       "\"rss_kib\": %ld, \"rings_kib\": %ld",
	       argv[1], stage, (unsigned long long)events, p.busy_s, status_kib("VmRSS:"),
	       status_kib("RssShmem:"));
	if (p.consumer != &nothing) {
		writer_stats(p.consumer, &stats);
		p.consumer->ops->free(p.consumer);
		read_s = read_into(argv[3], &nothing);
		summary_s = read_into(argv[3], summary_new(&(struct summary_options){
						       .text = fopen("/dev/null", "we") }));
		printf(", \"events\": %llu, \"bytes\": %llu, \"late\": %llu, "
		       "\"read_s\": %.4f, \"summary_s\": %.4f",
		       (unsigned long long)stats.events, (unsigned long long)stats.bytes,
		       (unsigned long long)order_late(p.order), read_s, summary_s);
	}
	puts("}");
	pipeline_free(p.pipeline);
	order_free(p.order);
	rings_free(p.rings);
	workload_free(workload);
	return 0;
}
