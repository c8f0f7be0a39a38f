// SPDX-License-Identifier: MIT
#include "launch.h"

#include <string.h>

#include "module.h"
#include "stream.h"

#define THREADS_MAX 1024
#define SHARED_MAX  (227 * 1024)

/* A thread of a kernel of the name `spin` takes a millisecond. */
#define SPIN_THREADS 100000000ull

/* The tags of the `extra` list: pointer to a buffer with all parameters, and its size. */
#define EXTRA_END    ((void *)0)
#define EXTRA_BUFFER ((void *)1)

static const char *extra_buffer(void **extra)
{
	for (size_t i = 0; extra && extra[i] != EXTRA_END; i += 2) {
		if (extra[i] == EXTRA_BUFFER)
			return extra[i + 1];
	}
	return NULL;
}

static CUresult copy_params(const struct known_kernel *known, const struct launch *launch,
                            uint64_t *params)
{
	const char *buffer = extra_buffer(launch->extra);
	size_t offset = 0;
	if (!launch->params && !buffer)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < known->n_params; i++) {
		size_t bytes = known->bytes[i];
		offset = (offset + bytes - 1) / bytes * bytes; /* each at its natural alignment */
		const void *from = launch->params ? launch->params[i] : buffer + offset;
		if (!from)
			return CUDA_ERROR_INVALID_VALUE;
		params[i] = 0;
		memcpy(&params[i], from, bytes);
		offset += bytes;
	}
	return CUDA_SUCCESS;
}

CUresult launch_task(const struct launch *launch, struct task *task)
{
	const void *handle = launch->function;
	const struct known_kernel *known;
	const char *name;
	if (handle_is(handle, HANDLE_FUNCTION)) {
		known = launch->function->known;
		name = launch->function->kept_name;
	} else if (handle_is(handle, HANDLE_KERNEL)) {
		known = ((const struct CUkern_st *)handle)->known;
		name = ((const struct CUkern_st *)handle)->kept_name;
	} else {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	uint64_t blocks = 1, threads = 1;
	for (int i = 0; i < 3; i++) {
		if (launch->grid[i] == 0 || launch->block[i] == 0)
			return CUDA_ERROR_INVALID_VALUE;
		blocks *= launch->grid[i];
		threads *= launch->block[i];
	}
	if (threads > THREADS_MAX || launch->shared_bytes > SHARED_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	task->kind = TASK_KERNEL;
	task->trace = NULL;
	task->kernel.known = known;
	task->kernel.name = name;
	memcpy(task->kernel.grid, launch->grid, sizeof(launch->grid));
	memcpy(task->kernel.block, launch->block, sizeof(launch->block));
	task->kernel.shared_bytes = launch->shared_bytes;
	task->kernel.cooperative = launch->cooperative;
	task->kernel.threads = blocks * threads;
	if (name && !strcmp(name, "spin"))
		task->kernel.threads *= SPIN_THREADS;
	return known ? copy_params(known, launch, task->kernel.params) : CUDA_SUCCESS;
}

static CUresult launch_on(const struct launch *launch, CUstream handle, enum null_stream null)
{
	CUstream stream;
	struct task task;
	CUresult result = stream_find(handle, null, &stream);
	if (result == CUDA_SUCCESS)
		result = launch_task(launch, &task);
	return result == CUDA_SUCCESS ? stream_submit(stream, &task, SUBMIT_ASYNC) : result;
}

static CUresult launch_config(const CUlaunchConfig *config, CUfunction function, void **params,
                              void **extra, enum null_stream null)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	struct launch launch = {
		.function = function,
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.shared_bytes = config->sharedMemBytes,
		.params = params,
		.extra = extra,
	};
	return launch_on(&launch, config->hStream, null);
}

#define LAUNCH(is_cooperative, extra_list)                                                         \
	launch_on(&(struct launch){ .function = function,                                          \
	                            .grid = { gx, gy, gz },                                        \
	                            .block = { bx, by, bz },                                       \
	                            .shared_bytes = shared,                                        \
	                            .cooperative = is_cooperative,                                 \
	                            .params = params,                                              \
	                            .extra = extra_list },                                         \
	          stream, null)

API_PTSZ(cuLaunchKernel,
         (CUfunction, function, unsigned int, gx, unsigned int, gy, unsigned int, gz, unsigned int,
          bx, unsigned int, by, unsigned int, bz, unsigned int, shared, CUstream, stream, void **,
          params, void **, extra),
         LAUNCH(false, extra))
API_PTSZ(cuLaunchCooperativeKernel,
         (CUfunction, function, unsigned int, gx, unsigned int, gy, unsigned int, gz, unsigned int,
          bx, unsigned int, by, unsigned int, bz, unsigned int, shared, CUstream, stream, void **,
          params),
         LAUNCH(true, NULL))
API_PTSZ(cuLaunchKernelEx,
         (const CUlaunchConfig *, config, CUfunction, function, void **, params, void **, extra),
         launch_config(config, function, params, extra, null))
