// SPDX-License-Identifier: MIT
/*
 * What cuscope takes for a call that an agent recorded, without a process that calls: records as
 * two threads leave them in a ring are read, put in order and written to a trace file, as in a turn
 * of `cuscope record --in-process`. So instructions can be counted, and compared between builds.
 *
 *   drain getters|launches CALLS FILE     one line of JSON
 *
 * The filling of the ring is left out. Instructions are those of all threads, in user space.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_ring.h"
#include "base/array.h"
#include "base/xalloc.h"
#include "bpf/wire_hooks.h"
#include "capture/inside/inside_private.h"
#include "capture/session.h"
#include "trace/writer.h"

#define RING_BYTES ((size_t)32 << 20)
#define THREADS    2
#define CALL_NS    667      /* each thread: 3 million a second of both */
#define TURN_NS    20000000 /* between two readings of the ring */
#define SETTLE_NS  8000000  /* as in session.c */
#define PER_TURN   (TURN_NS / CALL_NS * THREADS)
#define STREAM     0x7f0000001000ull

/* ---- what stands for src/probe: this file is linked before it ------------------------------- */

static struct hook hooks[] = { { .name = "cuCtxGetDevice" }, { .name = "cuLaunchKernel" } };
static const struct module library = { .name = "libcuda.so.1" };
static struct wire_state state = { .driver_works = 1 };

const struct hook *modules_hook(const struct modules *modules, uint16_t id,
                                const struct module **module)
{
	if (id >= ARRAY_SIZE(hooks))
		return NULL;
	if (module)
		*module = &library;
	return &hooks[id];
}

struct wire_state *programs_state(struct programs *programs)
{
	return &state;
}

/* ---- the ring, as an agent fills it --------------------------------------------------------- */

struct feeder {
	struct agent_ring *ring;
	struct agent_shared *shared;
	char *memory;
	uint64_t ticks, ns; /* the clocks, as the threads see them */
	uint64_t cookie;
	uint64_t seed;
	uint32_t words, slot, tid[THREADS];
};

static void feeder_open(struct feeder *feeder)
{
	struct err err = { 0 };
	size_t all = AGENT_RING_AT + 2 * RING_BYTES;
	int memfd;

	if (agent_ring_new(RING_BYTES, &feeder->ring, &memfd, &err))
		abort();
	feeder->memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (feeder->memory == MAP_FAILED ||
	    mmap(feeder->memory + AGENT_RING_AT + RING_BYTES, RING_BYTES, PROT_READ | PROT_WRITE,
	         MAP_SHARED | MAP_FIXED, memfd, AGENT_RING_AT) == MAP_FAILED)
		abort();
	close(memfd);
	feeder->shared = (struct agent_shared *)feeder->memory;
}

/* Arguments as programs have them: pointers that stay, and one that does not. */
static void fill_words(const struct feeder *feeder, struct agent_probed *call, uint64_t i)
{
	memset(call->word, 0, feeder->words * sizeof(*call->word));
	if (feeder->slot == 0) {
		call->word[WIRE_AT_REG] = 0x7ffd00001000ull;
		return;
	}
	for (unsigned at = 0; at < WIRE_REGS; at++)
		call->word[WIRE_AT_REG + at] = at ? 1 : 0x5580000000f0ull;
	call->word[WIRE_AT_REG + 1] = 64 + i % 4;
	call->word[WIRE_AT_STACK] = 128;
	call->word[WIRE_AT_STACK + 2] = STREAM;
}

/* Its number is a thread's: cuscope looks at whose it is. */
static void *be_there(void *tid)
{
	__atomic_store_n((uint32_t *)tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	pause();
	return NULL;
}

static void begin_thread(uint32_t *tid)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, be_there, tid))
		abort();
	while (!__atomic_load_n(tid, __ATOMIC_ACQUIRE))
		usleep(100);
}

/* Clocks, caches and other work make each call different. */
static uint64_t any(struct feeder *feeder, uint64_t below)
{
	feeder->seed = feeder->seed * 6364136223846793005u + 1442695040888963407u;
	return (feeder->seed >> 33) % below;
}

static void put(struct feeder *feeder, uint64_t i)
{
	uint64_t head = feeder->shared->head;
	struct agent_probed *call =
		(struct agent_probed *)(feeder->memory + AGENT_RING_AT + (head & (RING_BYTES - 1)));
	uint64_t after;

	*call = (struct agent_probed){ .head = { .bytes = (uint32_t)(sizeof(*call) +
		                                                     feeder->words * 8),
		                                 .type = AGENT_PROBED,
		                                 .lane = (uint16_t)feeder->slot },
		                       .begin = feeder->ticks - 80 - any(feeder, 120),
		                       .end = feeder->ticks,
		                       .tid = feeder->tid[i % THREADS] };
	fill_words(feeder, call, i);
	feeder->shared->head = head + call->head.bytes;
	after = CALL_NS / THREADS / 2 + any(feeder, CALL_NS / THREADS);
	feeder->ticks += after;
	feeder->ns += after;
}

/* ---- the reading ---------------------------------------------------------------------------- */

struct drain {
	struct capture c; /* its pipeline, order, inside, and whom these tell */
	struct feeder feeder;
	struct inside_process *process;
	struct consumer *writer;
	struct err err;
	int counter; /* of instructions; -1: none can be had */
	double busy_s;
};

static void take(void *data, const struct agent_head *record)
{
	struct drain *d = data;

	if (!inside_record(d->c.inside, d->process->pid, record))
		abort();
}

static void check(int r, const struct err *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "drain: %s\n", err->text);
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int open_counter(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
		                        .size = sizeof(attr),
		                        .config = PERF_COUNT_HW_INSTRUCTIONS,
		                        .disabled = 1,
		                        .inherit = 1,
		                        .exclude_kernel = 1,
		                        .exclude_hv = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

__attribute__((noinline, noclone)) static void turn(struct drain *d, uint64_t until_ns)
{
	double begin = now_s();

	ioctl(d->counter, PERF_EVENT_IOC_ENABLE, 0);
	d->c.inside->now_ns = until_ns;
	check((int)agent_ring_read(d->feeder.ring, take, d, &d->err) < 0 ? -1 : 0, &d->err);
	check(order_read(d->c.order, d->c.rings, until_ns - SETTLE_NS), &d->err);
	check(pipeline_flush(d->c.pipeline, &d->err), &d->err);
	ioctl(d->counter, PERF_EVENT_IOC_DISABLE, 0);
	d->busy_s += now_s() - begin;
}

static void finish(struct drain *d, struct run_info *info)
{
	double begin = now_s();

	ioctl(d->counter, PERF_EVENT_IOC_ENABLE, 0);
	check(order_finish(d->c.order), &d->err);
	check(pipeline_end(d->c.pipeline, info, &d->err), &d->err);
	ioctl(d->counter, PERF_EVENT_IOC_DISABLE, 0);
	d->busy_s += now_s() - begin;
}

static void run(struct drain *d, uint64_t calls)
{
	struct run_info info = { .begin_ns = 1, .estimate_scale = 1, .returns = true };

	check(pipeline_begin(d->c.pipeline, &info, &d->err), &d->err);
	for (uint64_t i = 0; i < calls;) {
		for (uint64_t end = i + PER_TURN; i < end && i < calls; i++)
			put(&d->feeder, i);
		tick_clock_add(d->c.inside->ticks, d->feeder.ticks, d->feeder.ns, 1);
		turn(d, d->feeder.ns);
	}
	turn(d, d->feeder.ns + SETTLE_NS);
	info.end_ns = d->feeder.ns;
	finish(d, &info);
}

/* ---- what it needs -------------------------------------------------------------------------- */

static void open_inside(struct drain *d)
{
	struct inside *inside = d->c.inside = xcalloc(1, sizeof(*inside));
	struct inside_process *process;
	struct timespec now;

	inside->queue = call_queue_new();
	inside->tids = tids_new();
	inside->ticks = tick_clock_new();
	inside->options.pipeline = d->c.pipeline;
	clock_gettime(CLOCK_MONOTONIC, &now);
	d->feeder.ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 10000000;
	d->feeder.ticks = tick_clock_ticks() + 40000000;
	tick_clock_add(inside->ticks, d->feeder.ticks, d->feeder.ns, 1);
	d->feeder.ticks += 1000;
	d->feeder.ns += 1000;
	process = d->process = inside_process_get(inside, (uint32_t)getpid());
	process->slots = ARRAY_SIZE(hooks);
	process->cookies = xcalloc(process->slots, sizeof(*process->cookies));
	for (uint32_t i = 0; i < process->slots; i++)
		process->cookies[i] = hook_cookie(&hooks[i]);
	process->records = inside_records_new(process);
	process->counts = inside_counts_new(process);
	d->feeder.cookie = process->cookies[d->feeder.slot];
	d->feeder.words = cookie_words(d->feeder.cookie);
}

static void make_hooks(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		struct hook *hook = &hooks[i];

		hook->id = (uint16_t)i;
		hook->layer = LAYER_DRIVER;
		hook->group = HOOK_CORE;
		hook->api = api_find(hook->name);
		if (hook->api)
			api_plan(hook->api, ABI_NATIVE, &hook->plan);
	}
}

static void print(const struct drain *d, uint64_t calls, const char *what)
{
	struct writer_stats stats;
	uint64_t instructions = 0;

	writer_stats(d->writer, &stats);
	if (d->counter >= 0 && read(d->counter, &instructions, sizeof(instructions)) < 0)
		instructions = 0;
	printf("{\"workload\": \"%s\", \"calls\": %llu, \"events\": %llu, \"bad\": %llu, "
	       "\"late\": %llu, \"bytes\": %llu, \"busy_s\": %.4f, \"ns_a_call\": %.1f, "
	       "\"instructions_a_call\": %.1f}\n",
	       what, (unsigned long long)calls, (unsigned long long)stats.events,
	       (unsigned long long)d->c.inside->bad_records,
	       (unsigned long long)order_late(d->c.order), (unsigned long long)stats.bytes,
	       d->busy_s, 1e9 * d->busy_s / (double)calls, (double)instructions / (double)calls);
}

int main(int argc, char **argv)
{
	static struct drain d;
	static struct selection selection;
	uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	struct pipeline_options options = { .state = &state,
		                            .consumers = &d.writer,
		                            .n_consumers = 1,
		                            .hit = capture_hit,
		                            .data = &d.c };
	struct order_source source;
	int fd;

	if (argc != 4 || !calls)
		return 2;
	fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return 1;
	make_hooks();
	d.c.seccomp_safe = true;
	d.feeder.slot = !strcmp(argv[1], "launches");
	for (unsigned i = 0; i < THREADS; i++)
		begin_thread(&d.feeder.tid[i]);
	feeder_open(&d.feeder);
	d.writer = writer_new(fd, argv[3]);
	d.c.pipeline = pipeline_new(&options);
	d.c.governor = governor_new(&(struct governor_options){ .returns = true }, 1);
	d.c.runtime_launches =
		runtime_launches_new(&(struct runtime_launches_options){ .selection = &selection });
	open_inside(&d);
	d.c.order = order_new(capture_record, &d.c);
	d.c.rings = rings_new(); /* none: all comes from the agent */
	source = inside_source(d.c.inside);
	order_add_source(d.c.order, &source);
	d.counter = open_counter();
	run(&d, calls);
	print(&d, calls, argv[1]);
	return 0;
}
