// SPDX-License-Identifier: MIT
/*
 * A trace file as `cuscope record --gpu` writes it of a training on several GPUs, made by hand.
 *
 *   training FILE EVENTS [RANKS]     one line of JSON
 *
 * Each rank is a process with a GPU, a thread that runs forward and optimizer, and one that runs
 * backward. Kernels run on its default stream, sums over all ranks on a second, copies on a third.
 * What ran on the GPUs and ranges come 1.5 s after they ended, as the capture lets them through.
 */
#include "../../tests/unit/support.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "trace/writer.h"

#define RANKS_MAX 16
#define LAYERS    24
#define KERNELS   40
#define STEP_MOST 512 /* calls of one step */
#define LATE_NS   1500000000ull
#define ROUND_NS  20000000ull /* between two looks of the capture */
#define HOST_NS   20000       /* of a rank between two calls */

enum stream { COMPUTE, SUMS, COPIES, STREAMS };

static const uint64_t handle_of[STREAMS] = { 0, 0x55d0aa001000, 0x55d0aa002000 };
static const uint32_t number_of[STREAMS] = { 7, 20, 14 };

/* What a rank does is worked out for a whole step, then told call by call. */
struct rank {
	const struct process *process;
	uint32_t device, tid; /* whose turn it is */
	uint64_t now_ns, number, steps;
	uint64_t free_ns[STREAMS]; /* by when each has done what it was asked for */
	struct asked {
		struct call call;
		uint32_t tid;
	} asked[STEP_MOST];
	unsigned first, end;
};

/* An activity or a range, which waits until it is late enough. */
struct waiting {
	uint64_t end_ns;
	const struct process *process;
	uint32_t tid;
	uint32_t step; /* of a ProfilerStep, whose name has its number; 0: no such */
	bool is_range;
	union {
		struct activity activity;
		struct range range;
	};
};

static struct {
	struct consumer *writer;
	struct rank rank[RANKS_MAX];
	unsigned ranks;
	struct waiting **waiting; /* a heap: the first ends first */
	size_t n_waiting, room;
	uint64_t events, calls, activities, ranges, seed, now_ns;
	struct kernel *kernel[KERNELS], *sum;
} made;

static void check(int r, const struct err *err)
{
	if (!r)
		return;
	fprintf(stderr, "training: %s\n", err->text);
	exit(1);
}

/* Around `ns`: every duration is another one. */
static uint64_t about(uint64_t ns)
{
	made.seed ^= made.seed << 13;
	made.seed ^= made.seed >> 7;
	made.seed ^= made.seed << 17;
	return ns * 3 / 4 + made.seed % (ns / 2 + 1);
}

/* ---- calls --------------------------------------------------------------------------------- */

static struct call *put_call(struct rank *r, const char *function, uint64_t begin_ns,
                             uint64_t end_ns)
{
	struct asked *asked = &r->asked[r->end++];

	if (r->end == STEP_MOST)
		abort();
	asked->tid = r->tid;
	asked->call = call_at(function, 0, 0);
	asked->call.begin_ns = begin_ns;
	asked->call.end_ns = end_ns;
	asked->call.correlation = ++r->number;
	return &asked->call;
}

/* The next call of the rank; the host does other things before it. */
static struct call *ask(struct rank *r, const char *function, uint64_t duration_ns)
{
	uint64_t begin_ns = r->now_ns + about(HOST_NS);

	r->now_ns = begin_ns + about(duration_ns);
	return put_call(r, function, begin_ns, r->now_ns);
}

/* A call of the runtime with the driver's inside it, of which only the entry is recorded. */
static struct call *ask_runtime(struct rank *r, const char *function, const char *inner,
                                enum stream stream, uint64_t duration_ns)
{
	uint64_t begin_ns = r->now_ns + about(HOST_NS);
	struct call *call = put_call(r, inner, begin_ns + 300, 0);

	call->flags = CALL_NESTED | CALL_NO_RETURN;
	call->depth = 1;
	set_stream(call, handle_of[stream]);
	r->now_ns = begin_ns + 300 + about(duration_ns);
	call = put_call(r, function, begin_ns, r->now_ns);
	set_stream(call, handle_of[stream]);
	return call;
}

/* ---- what runs for them -------------------------------------------------------------------- */

static struct waiting *wait_for(struct rank *r, uint64_t end_ns)
{
	struct waiting *w = xcalloc(1, sizeof(*w));
	size_t at = made.n_waiting++;

	if (made.n_waiting > made.room) {
		made.room = made.room ? 2 * made.room : 1 << 16;
		made.waiting = xrealloc(made.waiting, made.room * sizeof(*made.waiting));
	}
	for (; at && made.waiting[(at - 1) / 2]->end_ns > end_ns; at = (at - 1) / 2)
		made.waiting[at] = made.waiting[(at - 1) / 2];
	made.waiting[at] = w;
	w->end_ns = end_ns;
	w->process = r->process;
	w->tid = r->process->pid;
	return w;
}

static struct waiting *take_first(void)
{
	struct waiting *first = made.waiting[0], *last = made.waiting[--made.n_waiting];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < made.n_waiting) {
		if (child + 1 < made.n_waiting &&
		    made.waiting[child + 1]->end_ns < made.waiting[child]->end_ns)
			child++;
		if (made.waiting[child]->end_ns >= last->end_ns)
			break;
		made.waiting[at] = made.waiting[child];
		at = child;
	}
	made.waiting[at] = last;
	return first;
}

static struct activity *put_work(struct rank *r, const struct call *call, enum activity_kind kind,
                                 enum stream stream, uint64_t duration_ns)
{
	uint64_t begin_ns = call->begin_ns + about(5000);
	struct activity *work;

	if (begin_ns < r->free_ns[stream] + 900)
		begin_ns = r->free_ns[stream] + 900;
	r->free_ns[stream] = begin_ns + about(duration_ns);
	work = &wait_for(r, r->free_ns[stream])->activity;
	work->kind = kind;
	work->begin_ns = begin_ns;
	work->end_ns = r->free_ns[stream];
	work->correlation = call->correlation;
	work->device = r->device;
	work->context = 1 + r->device;
	work->stream = number_of[stream];
	return work;
}

static void put_range(struct rank *r, struct range range, uint32_t step)
{
	struct waiting *w = wait_for(r, range.end_ns);

	w->is_range = true;
	w->range = range;
	w->step = step;
	w->tid = range.kind == RANGE_SYNC ? 0 : r->tid;
}

static void put_named(struct rank *r, const char *name, const char *domain, uint32_t depth,
                      uint64_t begin_ns)
{
	put_range(r,
	          (struct range){ .kind = RANGE_PUSHPOP,
	                          .begin_ns = begin_ns,
	                          .end_ns = r->now_ns + 400,
	                          .name = name,
	                          .domain = domain,
	                          .depth = depth },
	          0);
}

static void shape_kernel(struct activity *work, const struct kernel *kernel)
{
	work->kernel = kernel;
	work->grid[0] = 64 + 32 * kernel->id;
	work->block[0] = 128u << kernel->id % 2;
	work->grid[1] = work->grid[2] = work->block[1] = work->block[2] = 1;
	work->registers = 32 + 8 * (kernel->id % 17);
	work->shmem_dynamic = kernel->id % 4 ? 0 : 49152;
}

static void launch(struct rank *r, const struct kernel *kernel, enum stream stream,
                   uint64_t duration_ns)
{
	struct call *call = ask(r, "cuLaunchKernel", 5500);
	struct activity *work = put_work(r, call, ACTIVITY_KERNEL, stream, duration_ns);

	shape_kernel(work, kernel);
	call->kernel = kernel;
	call->args.handle = 0x55d0c0000000 + 0x1c0 * (uint64_t)kernel->id;
	set_args_of_type(call, T_KERNEL, call->args.handle);
	memcpy(call->args.grid, work->grid, sizeof(work->grid));
	memcpy(call->args.block, work->block, sizeof(work->block));
	call->args.shmem_bytes = work->shmem_dynamic;
	set_stream(call, handle_of[stream]);
}

static void copy(struct rank *r, const char *function, const char *inner, enum stream stream,
                 enum api_direction direction, enum activity_memory host, uint64_t bytes)
{
	bool in = direction == DIRECTION_H2D;
	struct call *call = ask_runtime(r, function, inner, stream, 6000);
	struct activity *work = put_work(r, call, ACTIVITY_COPY, stream, 1500 + bytes / 24);

	call->args.direction = work->direction = direction;
	call->args.bytes = work->bytes = bytes;
	set_args_of_type(call, T_BYTES, bytes);
	set_args_of_type(call, T_DST, in ? 0x7f2a00000000 : 0x7f1100000000);
	set_args_of_type(call, T_SRC, in ? 0x7f1100000000 : 0x7f2a00000000);
	work->source = in ? host : ACTIVITY_MEMORY_DEVICE;
	work->destination = in ? ACTIVITY_MEMORY_DEVICE : host;
}

/* ---- a step -------------------------------------------------------------------------------- */

static void load_data(struct rank *r)
{
	uint64_t begin_ns = r->now_ns;

	copy(r, "cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2", COPIES, DIRECTION_H2D,
	     ACTIVITY_MEMORY_PINNED, 3 << 20);
	copy(r, "cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2", COPIES, DIRECTION_H2D,
	     ACTIVITY_MEMORY_PAGEABLE, 8192);
	put_named(r, "DataLoader.__next__", NULL, 1, begin_ns);
}

static void allocate(struct rank *r, unsigned layer)
{
	uint64_t address = 0x7f2b00000000 + ((uint64_t)layer << 24);
	struct call *call = ask(r, "cudaMallocAsync", 1500);

	call->args.address = address;
	call->args.bytes = 1 << 20;
	set_args_of_type(call, T_PTR, address);
	set_args_of_type(call, T_BYTES, 1 << 20);
	set_stream(call, 0);
	call = ask(r, "cudaFreeAsync", 900);
	call->args.address = address;
	set_args_of_type(call, T_PTR, address);
	set_stream(call, 0);
}

static void forward(struct rank *r)
{
	uint64_t begin_ns = r->now_ns + 200;

	for (unsigned layer = 0; layer < LAYERS; layer++) {
		uint64_t layer_ns = r->now_ns + 500;

		launch(r, made.kernel[layer % 8], COMPUTE, 34000);
		put_named(r, "aten::linear", NULL, 2, layer_ns);
		layer_ns = r->now_ns + 500;
		launch(r, made.kernel[8 + layer % 6], COMPUTE, 4000);
		launch(r, made.kernel[14], COMPUTE, 2500);
		put_named(r, "aten::layer_norm", NULL, 2, layer_ns);
		if (layer % 8 == 0)
			allocate(r, layer);
	}
	put_named(r, "forward", NULL, 1, begin_ns);
}

/* The gradients of some layers are summed over all ranks while the next are computed. */
static void sum_gradients(struct rank *r)
{
	uint64_t begin_ns = r->now_ns + 300;
	struct call *call = ask_runtime(r, "cudaEventRecord", "cuEventRecord", COMPUTE, 900);

	call->args.event = 0x55d0bb000040;
	set_args_of_type(call, T_EVENT, call->args.event);
	call = ask_runtime(r, "cudaStreamWaitEvent", "cuStreamWaitEvent", SUMS, 700);
	call->args.event = 0x55d0bb000040;
	set_args_of_type(call, T_EVENT, call->args.event);
	if (r->free_ns[SUMS] < r->free_ns[COMPUTE])
		r->free_ns[SUMS] = r->free_ns[COMPUTE];
	launch(r, made.sum, SUMS, 180000);
	put_named(r, "ncclAllReduce", "NCCL", 0, begin_ns);
}

static void backward(struct rank *r)
{
	for (unsigned layer = 0; layer < LAYERS; layer++) {
		uint64_t begin_ns = r->now_ns + 500;

		for (unsigned i = 0; i < 4; i++)
			launch(r, made.kernel[15 + (4 * layer + i) % 20], COMPUTE,
			       i < 2 ? 30000 : 3500);
		put_named(r, "autograd::engine::evaluate_function: AddmmBackward0", NULL, 0,
		          begin_ns);
		if (layer % 4 == 3)
			sum_gradients(r);
	}
}

/* A graph of sixteen kernels, then the sums that were not fused. */
static void optimize(struct rank *r)
{
	uint64_t begin_ns = r->now_ns + 300;
	struct call *call = ask(r, "cudaGraphLaunch", 11000);

	call->args.handle = 0x55d0cc000002;
	set_args_of_type(call, T_GRAPHEXEC, call->args.handle);
	set_stream(call, 0);
	for (unsigned i = 0; i < 16; i++) {
		struct activity *work = put_work(r, call, ACTIVITY_KERNEL, COMPUTE, 5000);

		shape_kernel(work, made.kernel[35 + i % 4]);
		work->graph = 3;
		work->graph_node = 3001 + i;
	}
	for (unsigned i = 0; i < 6; i++)
		launch(r, made.kernel[39], COMPUTE, 9000);
	call = ask(r, "cudaMemsetAsync", 2800);
	call->args.bytes = 4 << 20;
	set_args_of_type(call, T_BYTES, 4 << 20);
	set_stream(call, 0);
	put_work(r, call, ACTIVITY_SET, COMPUTE, 3000)->bytes = 4 << 20;
	put_named(r, "Optimizer.step#AdamW.step", NULL, 1, begin_ns);
}

/* The loss is read: the host waits until all is done. */
static void read_loss(struct rank *r)
{
	uint64_t until_ns, begin_ns;
	struct call *call;

	copy(r, "cudaMemcpyAsync", "cuMemcpyDtoHAsync_v2", COMPUTE, DIRECTION_D2H,
	     ACTIVITY_MEMORY_PAGEABLE, 4);
	until_ns = r->free_ns[COMPUTE] > r->free_ns[SUMS] ? r->free_ns[COMPUTE] : r->free_ns[SUMS];
	begin_ns = r->now_ns + 2000;
	call = ask_runtime(r, "cudaStreamSynchronize", "cuStreamSynchronize", COMPUTE,
	                   until_ns > begin_ns ? until_ns - begin_ns : 3000);
	put_range(r,
	          (struct range){ .kind = RANGE_SYNC,
	                          .name = "Stream Sync",
	                          .begin_ns = call->begin_ns + 500,
	                          .end_ns = call->end_ns - 100,
	                          .correlation = call->correlation,
	                          .context = 1 + r->device,
	                          .stream = number_of[COMPUTE] },
	          0);
}

/* Once in fifty steps: an evaluation, a mark, memory that is not there. */
static void now_and_then(struct rank *r, uint64_t begin_ns)
{
	struct range mark = {
		.kind = RANGE_MARK, .name = "checkpoint", .begin_ns = r->now_ns, .end_ns = r->now_ns
	};
	struct range epoch = { .kind = RANGE_STARTEND,
		               .name = "epoch",
		               .domain = "train",
		               .begin_ns = begin_ns,
		               .end_ns = r->now_ns };
	struct range flush = { .kind = RANGE_OVERHEAD,
		               .name = "Buffer Flush",
		               .begin_ns = r->now_ns,
		               .end_ns = r->now_ns + 120000 };
	struct call *call = ask(r, "cudaMalloc", 90000);

	call->args.bytes = 1ull << 40;
	set_args_of_type(call, T_BYTES, 1ull << 40);
	fail_call(call, 2);
	put_range(r, mark, 0);
	put_range(r, epoch, 0);
	put_range(r, flush, 0);
	r->now_ns += about(2000000);
}

static void make_step(struct rank *r)
{
	uint64_t begin_ns = r->now_ns + 100;

	r->first = r->end = 0;
	r->tid = r->process->pid;
	load_data(r);
	forward(r);
	r->tid = r->process->pid + 1;
	backward(r);
	r->tid = r->process->pid;
	optimize(r);
	read_loss(r);
	put_range(r,
	          (struct range){
			  .kind = RANGE_PUSHPOP, .begin_ns = begin_ns, .end_ns = r->now_ns + 500 },
	          (uint32_t)++r->steps);
	if (r->steps % 50 == 0)
		now_and_then(r, begin_ns);
}

/* ---- to the file --------------------------------------------------------------------------- */

static void put(const struct event *event)
{
	struct err err = { 0 };

	check(made.writer->ops->event(made.writer, event, &err), &err);
	made.events++;
}

static void put_waiting(struct waiting *w)
{
	struct event event = { .type = w->is_range ? EVENT_RANGE : EVENT_ACTIVITY,
		               .time_ns = w->end_ns,
		               .process = w->process,
		               .tid = w->tid };
	char name[64];

	if (w->step) {
		snprintf(name, sizeof(name), "ProfilerStep#%u", w->step);
		w->range.name = name;
	}
	if (w->is_range)
		event.range = &w->range;
	else
		event.activity = &w->activity;
	*(w->is_range ? &made.ranges : &made.activities) += 1;
	put(&event);
}

/* What ended by then, in the order of the ends; the others go on waiting. */
static void put_all_until(uint64_t until_ns)
{
	while (made.n_waiting && made.waiting[0]->end_ns <= until_ns) {
		struct waiting *first = take_first();

		put_waiting(first);
		free(first);
	}
}

static uint64_t next_ns(const struct rank *r)
{
	const struct call *call = &r->asked[r->first].call;

	if (r->first == r->end)
		return UINT64_MAX;
	return call->end_ns ? call->end_ns : call->begin_ns;
}

/* False once all ranks have made their last step. */
static bool put_next_call(bool more)
{
	struct rank *r = &made.rank[0];
	struct event event;

	for (unsigned i = 1; i < made.ranks; i++) {
		if (next_ns(&made.rank[i]) < next_ns(r))
			r = &made.rank[i];
	}
	if (r->first == r->end)
		return false;
	made.now_ns = next_ns(r);
	event = call_event(r->process, r->asked[r->first].tid, &r->asked[r->first].call);
	put(&event);
	made.calls++;
	if (++r->first == r->end && more)
		make_step(r);
	return true;
}

static void put_thread(const struct process *process, uint32_t tid, const char *name)
{
	struct thread thread = { .priority = 20 };
	struct event event = { .type = EVENT_THREAD,
		               .time_ns = US(0),
		               .process = process,
		               .tid = tid,
		               .thread = &thread };

	snprintf(thread.comm, sizeof(thread.comm), "%s", name);
	put(&event);
}

static void make_ranks(void)
{
	static char names[KERNELS][128];

	for (unsigned i = 0; i < KERNELS; i++) {
		snprintf(names[i], sizeof(names[i]),
		         "void layers::kernel_%u<float, %u>(float const*, float*, int)", i, 4 + i);
		made.kernel[i] = new_kernel(names[i], true);
	}
	made.sum = new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", true);
	for (unsigned i = 0; i < made.ranks; i++) {
		struct rank *r = &made.rank[i];
		struct event event;

		r->process = new_process(5000000 + 10 * i, "python3");
		r->device = i;
		r->now_ns = US(500 + 170 * i);
		event = process_event(EVENT_PROCESS, r->process, 0);
		put(&event);
		put_thread(r->process, r->process->pid, "python3");
		put_thread(r->process, r->process->pid + 1, "pt_autograd_0");
		make_step(r);
	}
}

int main(int argc, char **argv)
{
	struct run_info run = default_run_info();
	uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, round_ns = US(0);
	struct err err = { 0 };
	int fd;

	if (argc < 3 || !wanted)
		return 2;
	made.ranks = argc > 3 ? (unsigned)atoi(argv[3]) : 4;
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || !made.ranks || made.ranks > RANKS_MAX)
		return 2;
	made.seed = 88172645463325252ull;
	made.writer = writer_new(fd, argv[1]);
	run.gpu_times = true;
	check(made.writer->ops->begin(made.writer, &run, &err), &err);
	make_ranks();
	while (put_next_call(made.events + made.n_waiting < wanted)) {
		if (made.now_ns < round_ns + ROUND_NS)
			continue;
		round_ns = made.now_ns;
		put_all_until(round_ns - LATE_NS);
	}
	put_all_until(UINT64_MAX);
	run.end_ns = made.now_ns + LATE_NS;
	check(made.writer->ops->end(made.writer, &run, &err), &err);
	made.writer->ops->free(made.writer);
	printf("{\"events\": %llu, \"calls\": %llu, \"activities\": %llu, \"ranges\": %llu, "
	       "\"seconds\": %.3f}\n",
	       (unsigned long long)made.events, (unsigned long long)made.calls,
	       (unsigned long long)made.activities, (unsigned long long)made.ranges,
	       (double)(made.now_ns - RUN_BEGIN_NS) / 1e9);
	free(made.waiting);
	return close(fd);
}
