// SPDX-License-Identifier: MIT
#include "output/jsonl_gpu.h"

#include "base/number.h"
#include "output/describe.h"
#include "output/args.h"

static void add_u64(struct buf *out, const char *key, uint64_t value)
{
	buf_puts(out, key);
	buf_u64(out, value);
}

static void add_unless_0(struct buf *out, const char *key, uint64_t value)
{
	if (value)
		add_u64(out, key, value);
}

static void add_word(struct buf *out, const char *key, const char *word)
{
	buf_puts(out, key);
	buf_putc(out, '"');
	buf_puts(out, word);
	buf_putc(out, '"');
}

static void add_text(struct buf *out, const char *key, const char *text)
{
	buf_puts(out, key);
	buf_json_string(out, text);
}

static void add_us(struct buf *out, const char *key, uint64_t ns)
{
	buf_puts(out, key);
	buf_fixed(out, ns, 3);
}

/* ---- activities ---------------------------------------------------------------------------- */

void jsonl_begin_activity(struct buf *out, const struct activity *activity,
                          const struct delay *delay)
{

	add_unless_0(out, ",\"tid\":", delay->tid);
	buf_puts(out, ",\"phase\":\"X\",\"type\":\"gpu\"");
	add_word(out, ",\"op\":", activity_words[activity->kind].op);
	add_us(out, ",\"duration_us\":", activity_duration_ns(activity));
	if (delay->queued)
		add_us(out, ",\"queue_us\":", delay->queue_ns);
}

static void add_kernel(struct buf *out, const struct activity *a)
{
	if (a->kernel) {
		buf_puts(out, ",\"kernel\":");
		kernel_add_json(a->kernel, out);
	}
	if (a->kernel && !a->kernel->resolved)
		buf_puts(out, ",\"unresolved\":true");
	buf_puts(out, ",\"grid\":");
	add_dims_json(out, a->grid);
	buf_puts(out, ",\"block\":");
	add_dims_json(out, a->block);
	add_u64(out, ",\"registers\":", a->registers);
	add_u64(out, ",\"shmem\":", (uint64_t)a->shmem_static + a->shmem_dynamic);
}

static void add_transfer(struct buf *out, const struct activity *a)
{
	uint64_t ns = activity_duration_ns(a);

	if (a->kind == ACTIVITY_COPY && a->direction != DIRECTION_NONE)
		add_word(out, ",\"direction\":", api_direction_name(a->direction));
	add_u64(out, ",\"size\":", a->bytes);
	if (ns) {
		buf_puts(out, ",\"bandwidth_gbps\":");
		buf_fixed(out, number_u64((double)a->bytes * 1e6 / (double)ns), 6);
	}
	if (a->kind == ACTIVITY_COPY)
		add_word(out, ",\"src_memory\":", activity_memory_name(a->source));
	add_word(out, ",\"dst_memory\":", activity_memory_name(a->destination));
	if (a->kind == ACTIVITY_COPY && a->direction == DIRECTION_P2P)
		add_u64(out, ",\"peer_device\":", a->peer_device);
}

void jsonl_add_activity(struct buf *out, const struct activity *a)
{
	add_u64(out, ",\"device\":", a->device);
	add_u64(out, ",\"context\":", a->context);
	add_u64(out, ",\"stream\":", a->stream);
	add_unless_0(out, ",\"correlation\":", a->correlation);
	if (a->kind == ACTIVITY_KERNEL)
		add_kernel(out, a);
	else if (activity_is_transfer(a))
		add_transfer(out, a);
	add_unless_0(out, ",\"graph\":", a->graph);
	add_unless_0(out, ",\"graph_node\":", a->graph_node);
}

/* ---- ranges -------------------------------------------------------------------------------- */

void jsonl_begin_range(struct buf *out, const struct range *range, uint32_t tid)
{

	add_unless_0(out, ",\"tid\":", tid);
	buf_puts(out, ",\"phase\":\"X\",\"type\":\"range\"");
	add_word(out, ",\"op\":", range_words[range->kind].op);
	add_text(out, ",\"name\":", range->name);
	if (range->kind == RANGE_PUSHPOP)
		add_u64(out, ",\"depth\":", range->depth);
	add_us(out, ",\"duration_us\":", range_duration_ns(range));
}

void jsonl_add_range(struct buf *out, const struct range *range)
{
	if (range->domain)
		add_text(out, ",\"domain\":", range->domain);
	add_unless_0(out, ",\"context\":", range->context);
	add_unless_0(out, ",\"stream\":", range->stream);
	add_unless_0(out, ",\"correlation\":", range->correlation);
}

/* ---- metrics ------------------------------------------------------------------------------- */

void jsonl_add_metrics(struct buf *out, const struct gpu_metrics_sample *sample)
{
	uint64_t ns = sample->end_ns > sample->begin_ns ? sample->end_ns - sample->begin_ns : 0;

	buf_puts(out, ",\"type\":\"gpu_metrics\"");
	add_u64(out, ",\"gpu\":", sample->gpu);
	add_word(out, ",\"source\":", gpu_metrics_source_name(sample->source));
	add_us(out, ",\"duration_us\":", ns);
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		const struct gpu_metric_info *info = gpu_metric_info(i);

		if (sample->value[i] == GPU_METRIC_UNKNOWN)
			continue;
		buf_printf(out, ",\"%s_%s\":", info->key,
		           info->is_rate ? "bytes_per_s" : "percent");
		gpu_metric_print(out, i, sample->value[i]);
	}
}
