/* SPDX-License-Identifier: MIT */
/*
 * The golden trace `metrics`: four seconds in which GPU 0 is bound by its memory, GPU 1 busy with
 * kernels that are too small, GPU 2 computes with its tensor cores, and GPU 3 tells its utilisation
 * alone.
 */
#ifndef TESTS_GOLDEN_METRICS_H
#define TESTS_GOLDEN_METRICS_H

#include "scene.h"

#define METRICS_SAMPLES 40

static inline void put_metrics(struct scene *s, double begin_us, double end_us,
                               struct gpu_metrics_sample sample)
{
	struct event event = { .type = EVENT_METRICS, .process = s->process, .metrics = &sample };

	sample.begin_ns = US(begin_us);
	sample.end_ns = event.time_ns = US(end_us);
	put_event(s, &event);
}

/* In hundredths of a percent, and bytes a second. */
static inline struct gpu_metrics_sample gpm_sample(uint32_t gpu, const int64_t value[GPU_METRICS])
{
	struct gpu_metrics_sample sample = { .gpu = gpu, .source = GPU_METRICS_GPM };

	memcpy(sample.value, value, sizeof(sample.value));
	sample.value[GPU_METRIC_BUSY] = sample.value[GPU_METRIC_MEMORY_BUSY] = -1;
	return sample;
}

static inline void put_all_metrics(struct scene *s)
{
	const int64_t memory[GPU_METRICS] = { 9100, 9000, 8500,     1200,     160, 0, 0,
		                              500,  8400, 20 << 20, 10 << 20, 0,   0 };
	const int64_t small[GPU_METRICS] = { 9800, 1400, 300, 0, 900, -1, 0, 200, 700 };
	const int64_t tensor[GPU_METRICS] = { 9900, 9600, 1400, 9300, 0,          0,         0,
		                              100,  1600, 0,    0,    24ll << 30, 25ll << 30 };

	for (unsigned i = 0; i < METRICS_SAMPLES; i++) {
		double at_us = 10000 + 100000 * i, late_us = i == 20 ? 30000 : 0;
		struct gpu_metrics_sample old = { .gpu = 3, .source = GPU_METRICS_UTILIZATION };
		struct gpu_metrics_sample one = gpm_sample(0, memory);

		one.value[GPU_METRIC_DRAM] += 10 * (i % 5);
		put_metrics(s, at_us, at_us + 100000 + late_us, one);
		put_metrics(s, at_us + 1000, at_us + 101000, gpm_sample(1, small));
		put_metrics(s, at_us + 2000, at_us + 102000, gpm_sample(2, tensor));
		for (unsigned j = 0; j < GPU_METRICS; j++)
			old.value[j] = GPU_METRIC_UNKNOWN;
		old.value[GPU_METRIC_BUSY] = i < 30 ? 9700 : 0;
		old.value[GPU_METRIC_MEMORY_BUSY] = i < 30 ? 4000 : 0;
		put_metrics(s, at_us + 3000, at_us + 103000, old);
	}
}

static inline void trace_metrics(struct scene *s, const struct process *process,
                                 const struct kernel *kernel)
{
	put_process(s, 0, process);
	put_thread(s, 5, process->pid, "python3", 20);
	for (unsigned i = 0; i < 40; i++)
		put_call(s, launch_at("cudaLaunchKernel", 12000 + 100000 * i, kernel));
	put_all_metrics(s);
}

static inline struct run_metrics metrics_asked(void)
{
	return (struct run_metrics){ .interval_ns = 100000000,
		                     .gpm = 3 * METRICS_SAMPLES,
		                     .utilization = METRICS_SAMPLES,
		                     .late = 1,
		                     .none = 2,
		                     .cpu_ns = 8000000 };
}

#endif
