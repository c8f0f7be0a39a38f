// SPDX-License-Identifier: MIT
/*
 * Metrics of GPUs as counters of the process that stands for the GPU. A counter has its value from
 * the begin of its sample on.
 */
#include "gpus/gpu_metrics.h"
#include "output/chrome/chrome.h"

void chrome_add_metrics(struct chrome_writer *writer, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;
	struct buf *out = writer->out;

	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		const struct gpu_metric_info *info = gpu_metric_info(i);

		if (!gpu_metric_is_drawn(sample, i))
			continue;
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
