// SPDX-License-Identifier: MIT
/*
 * Makes a trace that is hard on what stores its values:
 *
 *   hard FILE CALLS
 *
 * A process and a kernel whose names are no UTF-8, a kernel with a name of 10,000 bytes, CALLS
 * calls (0: no event at all), the last one 2^53 + 1 ns after the begin, allocations of 2^63 bytes
 * at 2^64 - 1, results that are negative.
 */
#include "../unit/trace_events.h"

#define FAR_NS ((1ull << 53) + 1)

static struct consumer *writer;
static const struct process *process;

static void pass(struct event event)
{
	struct err err = { 0 };

	event.process = process;
	if (writer->ops->event(writer, &event, &err))
		fail_msg("%s", err.text);
}

static void pass_call(struct call call)
{
	pass((struct event){
		.type = EVENT_CALL, .time_ns = call.end_ns, .tid = process->pid, .call = &call });
}

static const struct kernel *kernel_of(const char *name)
{
	struct kernel *kernel = new_kernel(strdup(name), true);

	kernel->mangled = kernel->name;
	return kernel;
}

static const struct kernel *long_kernel(void)
{
	static char name[10001];

	memset(name, 'k', 10000);
	return kernel_of(name);
}

/* The number that the call has, where calls end a microsecond apart. */
static struct call call_of(uint64_t number, uint64_t calls, const struct kernel *const kernels[2])
{
	double at_us = 10 + 2.0 * (double)number;
	struct call call;

	switch (number % 4) {
	case 0:
		call = launch_at("cudaLaunchKernel", at_us, kernels[number / 4 % 2]);
		call.args.grid[0] = (uint32_t)number;
		break;
	case 1:
		call = alloc_at("cudaMalloc", at_us, UINT64_MAX, 1ull << 63);
		fail_call(&call, -7);
		break;
	case 2:
		call = copy_at("cudaMemcpyAsync", at_us, DIRECTION_H2D, number * number);
		break;
	default:
		call = call_at("cudaDeviceSynchronize", at_us, 1);
		break;
	}
	call.end_ns = call.begin_ns + 1000 + number % 7;
	if (number == calls - 1)
		call.end_ns = RUN_BEGIN_NS + FAR_NS;
	call.correlation = number + 1;
	return call;
}

int main(int argc, char **argv)
{
	const struct kernel *const kernels[2] = { long_kernel(),
		                                  kernel_of("k\xff\xfe\x1b[31m\xc3\xa9") };
	uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	struct run_info run = default_run_info();
	struct thread thread = { .comm = "\xc3(\x80" };
	struct err err = { 0 };
	int fd = argc > 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

	if (fd < 0)
		return 2;
	process = new_process(4242, "\xff\x01train\xe2\x82");
	run.end_ns = RUN_BEGIN_NS + FAR_NS + 1;
	writer = writer_new(fd, argv[1]);
	assert_int_equal(writer->ops->begin(writer, &run, &err), 0);
	if (calls) {
		pass((struct event){
			.type = EVENT_PROCESS, .time_ns = US(1), .tid = process->pid });
		pass((struct event){ .type = EVENT_THREAD,
		                     .time_ns = US(2),
		                     .tid = process->pid,
		                     .thread = &thread });
	}
	for (uint64_t i = 0; i < calls; i++)
		pass_call(call_of(i, calls, kernels));
	assert_int_equal(writer->ops->end(writer, &run, &err), 0);
	writer->ops->free(writer);
	close(fd);
	return 0;
}
