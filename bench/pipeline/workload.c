// SPDX-License-Identifier: MIT
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "probe/modules.h"

#define FIRST_NS 5000000000000ull
#define PID      5000001u /* beyond the largest that Linux gives out: /proc knows it not */
#define KERNELS  24
#define THREADS  4
#define NAMES    (KERNELS * 2)

/* ---- hooks: this file stands in for src/probe/modules.c ------------------------------------ */

static struct hook hooks[] = {
	{ .name = "cuLaunchKernel" },       { .name = "cudaMemcpyAsync" },
	{ .name = "cuMemcpyHtoDAsync_v2" }, { .name = "cudaEventRecord" },
	{ .name = "cuEventRecord" },        { .name = "cudaMallocAsync" },
	{ .name = "cuMemAllocAsync" },      { .name = "cudaFreeAsync" },
	{ .name = "cuMemFreeAsync" },       { .name = "cudaStreamSynchronize" },
	{ .name = "cuStreamSynchronize" },  { .name = "cuMemsetD32Async" },
};

enum {
	LAUNCH,
	COPY,
	COPY_INNER,
	RECORD,
	RECORD_INNER,
	ALLOC,
	ALLOC_INNER,
	FREE,
	FREE_INNER,
	SYNC,
	SYNC_INNER,
	SET,
};

static void make_hooks(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		struct hook *hook = &hooks[i];

		hook->id = (uint16_t)i;
		hook->layer = strncmp(hook->name, "cuda", 4) ? LAYER_DRIVER : LAYER_RUNTIME;
		hook->group = HOOK_CORE;
		hook->api = api_find(hook->name);
		api_plan(hook->api, ABI_NATIVE, &hook->plan);
	}
}

const struct hook *modules_hook(const struct modules *modules, uint16_t id,
                                const struct module **module)
{
	static const struct module libraries[] = { { .name = "libcuda.so.1" },
		                                   { .name = "libcudart.so.13" } };

	if (id >= ARRAY_SIZE(hooks))
		return NULL;
	if (module)
		*module = &libraries[hooks[id].layer];
	return &hooks[id];
}

/* ---- threads ------------------------------------------------------------------------------- */

struct maker {
	uint32_t pid, tid;
	uint64_t now_ns;
	unsigned step, named;
	struct wire_call inner, outer; /* the next records */
	bool has_inner, has_outer, announced;
	uint64_t addresses[16]; /* of live allocations */
	unsigned n_addresses;
};

struct workload {
	bool launches_only;
	struct maker maker[THREADS];
	unsigned n_makers;
	uint64_t seed;
	struct wire_name name;
	struct wire_process process;
};

static uint64_t any(struct workload *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed;
}

/* Around `ns`: clocks, caches and other work make every duration different. */
static uint64_t about(struct workload *w, uint64_t ns)
{
	return ns * 3 / 4 + any(w) % (ns / 2);
}

struct workload *workload_new(const char *name)
{
	struct workload *w = xcalloc(1, sizeof(*w));

	make_hooks();
	w->seed = 88172645463325252ull;
	w->launches_only = !strcmp(name, "launches");
	w->n_makers = w->launches_only ? 1 : THREADS;
	for (unsigned i = 0; i < w->n_makers; i++)
		w->maker[i] = (struct maker){ .pid = PID + 10 * (i / 2),
			                      .tid = PID + 100 + i,
			                      .now_ns = FIRST_NS + 100 * i };
	return w;
}

void workload_free(struct workload *w)
{
	free(w);
}

/* ---- calls --------------------------------------------------------------------------------- */

static void call_begin(const struct maker *maker, struct wire_call *call, uint16_t hook)
{
	const struct capture_plan *plan = &hooks[hook].plan;

	memset(call, 0, sizeof(*call));
	call->head.type = WIRE_CALL;
	call->head.hook = hook;
	call->head.tgid = maker->pid;
	call->head.tid = maker->tid;
	call->head.words = (uint8_t)(plan->blob != PLAN_NO_ARG ? WIRE_AT_BLOB + plan->blob_words
	                             : plan->stack             ? WIRE_AT_STACK + plan->stack
	                                                       : WIRE_AT_REG + plan->regs);
	call->begin_ns = maker->now_ns;
}

static void set_arg(struct wire_call *call, unsigned index, uint64_t value)
{
	if (index < WIRE_REGS)
		call->word[WIRE_AT_REG + index] = value;
	else
		call->word[WIRE_AT_STACK + index - WIRE_REGS] = value;
}

static uint64_t stream_of(const struct maker *maker)
{
	return maker->tid & 1 ? 0x55d0aa001000 : 0;
}

static void launch(struct workload *w, struct maker *maker, unsigned kernel)
{
	struct wire_call *call = &maker->outer;

	call_begin(maker, call, LAUNCH);
	set_arg(call, 0, 0x55d0c0000000 + 0x1c0 * kernel);
	set_arg(call, 1, 64 + 32 * kernel);
	set_arg(call, 2, 1 + kernel % 3);
	set_arg(call, 3, 1);
	set_arg(call, 4, 128 << kernel % 2);
	set_arg(call, 5, 1);
	set_arg(call, 6, 1);
	set_arg(call, 7, kernel % 4 ? 0 : 49152);
	set_arg(call, 8, stream_of(maker));
	set_arg(call, 9, 0x7ffd00001000 + 64 * (kernel % 8));
	maker->now_ns += about(w, 3200);
}

/* A call of the runtime, and the driver's inside it, of which only the entry is recorded. */
static void runtime_call(struct workload *w, struct maker *maker, uint16_t hook, unsigned args,
                         const uint64_t *arg, uint64_t duration_ns)
{
	call_begin(maker, &maker->outer, hook);
	maker->now_ns += about(w, 300);
	call_begin(maker, &maker->inner, (uint16_t)(hook + 1));
	maker->inner.head.flags = WIRE_NESTED | WIRE_NO_RETURN;
	maker->inner.head.depth = 1;
	maker->inner.head.time_ns = maker->now_ns;
	for (unsigned i = 0; i < args; i++) {
		set_arg(&maker->outer, i, arg[i]);
		set_arg(&maker->inner, i, arg[i]);
	}
	maker->has_inner = true;
	maker->now_ns += about(w, duration_ns);
}

static void copy(struct workload *w, struct maker *maker)
{
	uint64_t args[] = { 0x7f2a00000000 + (any(w) % 64 << 21), 0x7f1100000000,
		            4096u << any(w) % 6, 1, stream_of(maker) };

	runtime_call(w, maker, COPY, 5, args, 5200);
	set_arg(&maker->inner, 3, stream_of(maker));
}

static void alloc(struct workload *w, struct maker *maker)
{
	uint64_t args[] = { 0x7ffd00002000, 512u << any(w) % 12, stream_of(maker) };

	runtime_call(w, maker, ALLOC, 3, args, 1500);
	maker->outer.word[0] = 0x7f2b00000000 + (any(w) % 65536 << 9);
	if (maker->n_addresses < ARRAY_SIZE(maker->addresses))
		maker->addresses[maker->n_addresses++] = maker->outer.word[0];
}

static void give_back(struct workload *w, struct maker *maker)
{
	uint64_t args[] = { maker->n_addresses ? maker->addresses[--maker->n_addresses] : 0,
		            stream_of(maker) };

	runtime_call(w, maker, FREE, 2, args, 900);
}

static void fill(struct workload *w, struct maker *maker)
{
	call_begin(maker, &maker->outer, SET);
	set_arg(&maker->outer, 0, 0x7f2a00000000 + (any(w) % 8 << 21));
	set_arg(&maker->outer, 2, 65536);
	set_arg(&maker->outer, 3, stream_of(maker));
	maker->now_ns += about(w, 2800);
}

/* A step of a training loop of 64 calls: most are launches, in an order that repeats. */
static void train(struct workload *w, struct maker *maker)
{
	unsigned step = maker->step++ % 64;
	uint64_t event[] = { 0x55d0bb000000 + 64 * (step / 16), stream_of(maker) };
	uint64_t stream[] = { stream_of(maker) };

	if (step == 0 || step == 1 || step == 30 || step == 31)
		copy(w, maker);
	else if (step == 10 || step == 40)
		alloc(w, maker);
	else if (step == 20 || step == 50)
		give_back(w, maker);
	else if (step % 16 == 15)
		runtime_call(w, maker, RECORD, 2, event, 800);
	else if (step == 2)
		fill(w, maker);
	else if (step == 62)
		runtime_call(w, maker, SYNC, 1, stream, 180000);
	else
		launch(w, maker, step * 7 % KERNELS);
}

static void make_calls(struct workload *w, struct maker *maker)
{
	maker->now_ns += about(w, 2600);
	if (w->launches_only)
		launch(w, maker, 0);
	else
		train(w, maker);
	maker->outer.head.time_ns = maker->now_ns;
	maker->has_outer = true;
}

/* ---- records ------------------------------------------------------------------------------- */

static const struct wire_head *announce(struct workload *w, struct maker *maker, uint32_t *bytes)
{
	w->process = (struct wire_process){ .head = { .type = WIRE_THREAD,
		                                      .tgid = maker->pid,
		                                      .tid = maker->tid,
		                                      .time_ns = maker->now_ns },
		                            .comm = "train" };
	maker->announced = true;
	*bytes = sizeof(w->process);
	return &w->process.head;
}

static const struct wire_head *name_kernel(struct workload *w, struct maker *maker, uint32_t *bytes)
{
	struct wire_name *name = &w->name;
	unsigned kernel = maker->named++;
	int len = snprintf(name->text, sizeof(name->text), "_ZN6layers7forwardILi%uEEEvPKfPfi",
	                   kernel);

	name->head = (struct wire_head){ .type = WIRE_NAME,
		                         .hook = LAUNCH,
		                         .bytes = (uint16_t)(len + 1),
		                         .tgid = maker->pid,
		                         .tid = maker->tid,
		                         .time_ns = maker->now_ns };
	name->key = 0x55d0c0000000 + 0x1c0 * kernel;
	name->source = NAME_OF_HANDLE;
	*bytes = WIRE_NAME_BYTES((uint32_t)len + 1);
	return &name->head;
}

static uint64_t next_time(struct workload *w, struct maker *maker)
{
	if (!maker->announced || maker->named < KERNELS)
		return maker->now_ns;
	if (!maker->has_inner && !maker->has_outer)
		make_calls(w, maker);
	return maker->has_inner ? maker->inner.head.time_ns : maker->outer.head.time_ns;
}

const struct wire_head *workload_next(struct workload *w, uint32_t *bytes, unsigned *thread)
{
	struct maker *maker = &w->maker[0];
	uint64_t first_ns = next_time(w, maker);
	struct wire_call *call;

	for (unsigned i = 1; i < w->n_makers; i++) {
		uint64_t ns = next_time(w, &w->maker[i]);

		if (ns < first_ns) {
			first_ns = ns;
			maker = &w->maker[i];
		}
	}
	*thread = (unsigned)(maker - w->maker);
	if (!maker->announced)
		return announce(w, maker, bytes);
	if (maker->named < KERNELS)
		return name_kernel(w, maker, bytes);
	call = maker->has_inner ? &maker->inner : &maker->outer;
	*(maker->has_inner ? &maker->has_inner : &maker->has_outer) = false;
	*bytes = WIRE_CALL_BYTES(call->head.words);
	return &call->head;
}

/* ---- bpftrace's text ----------------------------------------------------------------------- */

unsigned workload_text(const struct wire_head *record, bool arguments)
{
	const struct wire_call *call = (const struct wire_call *)record;
	const struct hook *hook = &hooks[record->hook];
	const char *library = hook->layer == LAYER_DRIVER ? "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
	                                                  : "/opt/app/lib/libcudart.so.13";
	char line[1024];
	int len;

	if (record->type != WIRE_CALL)
		return 0;
	len = snprintf(line, sizeof(line), "%llu %u uprobe:%s:%s %d %llu",
	               (unsigned long long)call->begin_ns, record->tid, library, hook->name,
	               call->result, (unsigned long long)(record->time_ns - call->begin_ns));
	for (unsigned i = WIRE_AT_REG; arguments && i < record->words; i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, " %llx",
		                (unsigned long long)call->word[i]);
	return (unsigned)len + 1;
}
