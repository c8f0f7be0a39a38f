// SPDX-License-Identifier: MIT
/* What a Chrome trace says of itself, before its events and behind them. */
#include "output/chrome/chrome.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/missed.h"
#include "base/array.h"
#include "base/json.h"
#include "base/number.h"
#include "gpus/gpu_metrics.h"
#include "output/format.h"

/* ---- chrome kernels ------------------------------------------------------------------------ */

/*
 * What a kernel's args say, as Kineto has them. How well it can fill a GPU follows from what a
 * multiprocessor has room for; which of the machine's GPUs it ran on is known where they are alike.
 */

#define ADD(out, text) buf_add(out, text, sizeof(text) - 1)

static bool are_alike(const struct run_info *run)
{
	for (size_t i = 1; i < run->n_gpus; i++) {
		const struct run_gpu *a = &run->gpus[0], *b = &run->gpus[i];

		if (a->multiprocessors != b->multiprocessors || a->major != b->major ||
		    a->minor != b->minor)
			return false;
	}
	return run->n_gpus > 0;
}

void chrome_gpu_of_run(struct chrome_gpu *gpu, const struct run_info *run)
{
	memset(gpu, 0, sizeof(*gpu));
	if (!are_alike(run))
		return;
	gpu->multiprocessors = run->gpus[0].multiprocessors;
	gpu->limits = gpu_limits(run->gpus[0].major, run->gpus[0].minor);
}

void chrome_add_triple(struct buf *out, const char *key, const uint32_t dims[3])
{
	buf_puts(out, key);
	for (int i = 0; i < 3; i++) {
		buf_puts(out, i ? ", " : "[");
		buf_u64(out, dims[i]);
	}
	buf_putc(out, ']');
}

static void add_real(struct buf *out, const char *key, double value)
{
	buf_puts(out, key);
	buf_fixed(out, number_u64(value * 1e6), 6);
}

static double kernels_volume(const uint32_t dims[3])
{
	return (double)dims[0] * dims[1] * dims[2];
}

static void add_share(struct buf *out, const struct chrome_gpu *gpu, const struct activity *a)
{
	double threads = kernels_volume(a->block), blocks;
	double each = kernels_volume(a->grid) / gpu->multiprocessors;

	add_real(out, ", \"blocks per SM\": ", each);
	add_real(out, ", \"warps per SM\": ", each * threads / GPU_THREADS_PER_WARP);
	if (!gpu->limits || threads > GPU_THREADS_PER_BLOCK)
		return;
	blocks = gpu_resident_blocks(gpu->limits, (uint64_t)threads, a->registers,
	                             (uint64_t)a->shmem_static + a->shmem_dynamic);
	blocks = blocks < each ? blocks : each;
	ADD(out, ", \"est. achieved occupancy %\": ");
	buf_u64(out, number_rounded(100 * blocks * threads /
	                            (gpu->limits->warps * GPU_THREADS_PER_WARP)));
}

/* When it was queued CUPTI tells only where that is asked for, at a cost: 0, as in Kineto. */
void chrome_add_kernel(struct buf *out, const struct chrome_gpu *gpu, const struct activity *a)
{
	ADD(out, ", \"queued\": 0, \"registers per thread\": ");
	buf_u64(out, a->registers);
	ADD(out, ", \"shared memory\": ");
	buf_u64(out, (uint64_t)a->shmem_static + a->shmem_dynamic);
	if (gpu->multiprocessors)
		add_share(out, gpu, a);
	chrome_add_triple(out, ", \"grid\": ", a->grid);
	chrome_add_triple(out, ", \"block\": ", a->block);
}

/* ---- chrome metrics ------------------------------------------------------------------------ */

/*
 * Metrics of GPUs as counters of the process that stands for the GPU. A counter has its value from
 * the begin of its sample on.
 */

void chrome_add_metrics(struct chrome_writer *writer, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;
	struct buf *out = writer->out;

	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		enum gpu_metric drawn = gpu_metric_drawn(sample, i);
		const struct gpu_metric_info *info;

		if (drawn == GPU_METRICS_DRAWN)
			continue;
		info = gpu_metric_info(drawn);
		chrome_begin_event(writer);
		buf_printf(out,
		           "\"ph\": \"C\", \"cat\": \"gpu_metrics\", \"name\": \"GPU %u %s\", "
		           "\"pid\": %u, \"tid\": 0, \"ts\": ",
		           sample->gpu, info->name, sample->gpu);
		chrome_add_time(writer, sample->begin_ns);
		buf_printf(out, ", \"args\": {\"%s\": ", info->is_rate ? "bytes/s" : "%");
		gpu_metric_print(out, i, sample->value[i]);
		buf_puts(out, "}}");
	}
}

/* ---- chrome run ---------------------------------------------------------------------------- */

/*
 * Times are relative to a base, since microseconds since 1970 with nanoseconds behind the point are
 * more than a double holds. As in Kineto it is a round date, so that files of several ranks, begun
 * at different times, have the same: HTA compares their times without looking at it.
 */
#define BASE_STEP_NS (90ull * 24 * 3600 * 1000000000)

/*
 * HTA finds a file's rank by a pattern that wants a blank after the colon, and takes the first that
 * it meets: so this stands at the top, on a line of its own.
 */
void chrome_run_begin(struct chrome_writer *writer, const struct sink_options *options,
                      const struct run_info *run)
{
	struct buf *out = writer->out;
	uint64_t real_ns = run->begin_ns + (uint64_t)run->realtime_offset_ns;
	uint64_t base_ns = real_ns - real_ns % BASE_STEP_NS;

	writer->base_ns = base_ns - (uint64_t)run->realtime_offset_ns;
	buf_puts(out, "{\n  \"schemaVersion\": 1,\n");
	buf_printf(out,
	           "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %u, "
	           "\"world_size\": %u},\n",
	           options->rank, options->world_size ? options->world_size : options->rank + 1);
	buf_printf(out, "  \"trace_id\": \"%016" PRIX64 "%016" PRIX64 "\",\n", real_ns,
	           run->begin_ns);
	buf_puts(out, "  \"displayTimeUnit\": \"ms\",\n");
	buf_printf(out, "  \"baseTimeNanoseconds\": %" PRIu64 ",\n", base_ns);
	buf_puts(out, "  \"traceEvents\": [\n");
}

/* Devices only by their numbers: which of the machine's GPUs a program's number is, is
 * not known. */
static void add_devices(struct buf *out, const struct chrome_rows *rows)
{
	size_t n;
	const uint32_t *devices = chrome_rows_devices(rows, &n);

	if (!n)
		return;
	buf_puts(out, "  \"deviceProperties\": [");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s{\"id\": %u}", i ? ", " : "", devices[i]);
	buf_puts(out, "],\n");
}

static void add_who(struct json *json, const struct chrome_rows *rows, const struct run_info *run)
{
	const struct run_identity *identity;
	bool any = false;
	size_t at = 0;

	while ((identity = who_next(chrome_rows_who(rows), run, &at))) {
		if (!any)
			json_open(json, "processes", '[');
		any = true;
		json_open(json, NULL, '{');
		who_json(identity, json);
		json_close(json, '}');
	}
	if (any)
		json_close(json, ']');
}

static void add_run(struct buf *out, const struct run_info *run, const struct sink *sink,
                    const struct chrome_rows *rows, uint64_t stacks_left_out)
{
	const struct {
		const char *key, *value;
	} known[] = {
		{ "hostname", run->hostname },
		{ "kernel_release", run->kernel_release },
		{ "driver_version", run->driver_version },
		{ "command", run->command },
	};
	struct json json = { .out = out, .depth = 1, .comma = false };
	struct buf file = { 0 };

	buf_puts(out, "  \"cuscope\": {");
	json_string(&json, "version", CUSCOPE_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		json_string_if(&json, known[i].key, known[i].value);
	}
	json_u64_if(&json, "not_joined", sink->unjoined);
	json_u64_if(&json, "stacks_left_out", stacks_left_out);
	add_who(&json, rows, run);
	missed_json_and_stacks(&json, run, &sink->stacks);
	if (missed_of_file(run, &file))
		json_string(&json, "incomplete", file.data);
	buf_free(&file);
	buf_puts(out, "},\n");
}

void chrome_run_end(struct chrome_writer *writer, const struct chrome_rows *rows,
                    struct chrome_stacks *stacks, struct sink *sink, const struct run_info *run)
{
	struct buf *out = writer->out;

	chrome_begin_event(writer);
	buf_puts(out, "\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", "
	              "\"pid\": \"\", \"tid\": \"\", \"ts\": ");
	chrome_add_time(writer, run->end_ns);
	buf_puts(out, "}\n  ],\n");
	add_devices(out, rows);
	chrome_add_stacks(stacks, sink);
	add_run(out, run, sink, rows, chrome_stacks_left_out(stacks));
	buf_puts(out, "  \"traceName\": ");
	buf_json_string(out, sink->options.path ? sink->options.path : "");
	buf_puts(out, "\n}\n");
}
