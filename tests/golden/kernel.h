/* SPDX-License-Identifier: MIT */
/*
 * The golden trace `kernel`: a vectorAdd, with the system calls to the driver that its CUDA calls
 * made, and with what a hook on another library saw. Their functions come from rows made here, as a
 * reader makes them of a file.
 */
#ifndef TESTS_GOLDEN_KERNEL_H
#define TESTS_GOLDEN_KERNEL_H

#include "base/array.h"
#include "cuda/api.h"
#include "scene.h"

static inline const struct function *other_function(enum api_layer layer, const char *name,
                                                    const char *lib, const char *arguments)
{
	static struct function functions[16];
	static uint32_t n;
	struct api *made;

	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	}
	assert_true(n < ARRAY_SIZE(functions));
	functions[n] = (struct function){
		.id = 1000 + n,
		.name = name,
		.lib = lib,
		.layer = layer,
		.cls = CLASS_OTHER,
		.api = api_from_text(
			&(struct api_text){ .name = name, .cls = CLASS_OTHER, .spec = arguments },
			&made),
	};
	return &functions[n++];
}

static inline struct call other_call(const struct function *function, double at_us,
                                     double duration_us, uint64_t first, uint64_t second)
{
	struct call call = { .function = function,
		             .begin_ns = US(at_us),
		             .end_ns = US(at_us + duration_us),
		             .depth = 1,
		             .args = { .arg = { first, second } } };
	const struct api_arg *args;

	call.args.n_args = (uint8_t)api_args(function->api, &args);
	return call;
}

static inline void put_driver(struct scene *s, const char *name, const char *arguments,
                              double at_us, double duration_us, uint64_t first, uint64_t second)
{
	const char *lib = strncmp(name, "UVM", 3) ? "nvidia" : "nvidia-uvm";

	put_call(s, other_call(other_function(LAYER_KERNEL, name, lib, arguments), at_us,
	                       duration_us, first, second));
}

static inline void put_refused(struct scene *s, double at_us, int status)
{
	struct call call =
		other_call(other_function(LAYER_KERNEL, "RM_ALLOC NV01_MEMORY_LOCAL_USER", "nvidia",
	                                  "object:*handle parent:handle"),
	                   at_us, 12, 0, 0xc1d00002);

	fail_call(&call, status);
	put_call(s, call);
}

static inline void trace_kernel(struct scene *s, const struct process *process,
                                const struct kernel *kernel)
{
	struct call lost, malloced = alloc_at("cudaMalloc", 3300, 0x7f2a00000000, 1 << 20);

	put_process(s, 100, process);
	put_thread(s, 110, process->pid, "vectorAdd", 20);
	put_driver(s, "open nvidiactl", "", 150, 30, 0, 0);
	put_driver(s, "RM_ALLOC NV01_ROOT_CLIENT", "object:*handle parent:handle", 200, 25,
	           0xc1d00001, 0);
	for (unsigned i = 0; i < 3; i++)
		put_driver(s, "RM_CONTROL GPU_GET_INFO_V2", "object:handle", 300 + 50 * i, 10 + i,
		           0xcaf00001, 0);
	put_driver(s, "RM_CONTROL GPFIFO_SCHEDULE (TSG)", "object:handle", 600, 40, 0xcaf00007, 0);
	put_call(s, call_at("cuInit", 120, 3000));
	put_driver(s, "RM_ALLOC NV01_MEMORY_LOCAL_USER", "object:*handle parent:handle", 3310, 90,
	           0xcaf00009, 0xc1d00002);
	put_driver(s, "UVM_CREATE_EXTERNAL_RANGE", "base:addr length:size", 3420, 20,
	           0x7f2a00000000, 2 << 20);
	malloced.end_ns = US(3550);
	put_call(s, malloced);
	put_refused(s, 3610, 0x51);
	put_refused(s, 3630, -22);
	put_driver(s, "ioctl 0x46/0x63 (nvidiactl)", "", 3650, 2, 0, 0);
	lost = other_call(
		other_function(LAYER_KERNEL, "poll nvidiactl", "nvidia", "descriptors:uint"), 5000,
		0, 1, 0);
	never_ends(&lost, CALL_UNFINISHED);
	put_call(s, lost);
	put_call(s, launch_at("cudaLaunchKernel", 4000, kernel));
	put_call(s, other_call(other_function(LAYER_HOOK, "nccl.ncclAllReduce", "libnccl.so.2",
	                                      "send:addr count:u64"),
	                       4100, 60, 0x7f2a00000000, 4096));
	put_other(s, EVENT_EXIT, 8000, NULL, 0);
}

#endif
