// SPDX-License-Identifier: MIT
/*
 * Metrics of GPUs: a counter for each, below a row of the GPU. A counter has a value from the begin
 * of its sample on, since the next sample begins where it ends.
 */
#include "gpus/gpu_metrics.h"
#include "output/perfetto/perfetto.h"

/* What no file of ours has in it: a sample by hand that claims to be of GPU 4 billion. */
#define GPUS_SHOWN RUN_GPUS_MAX

void perfetto_add_metrics(struct perfetto *p, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;

	for (enum gpu_metric i = 0; i < GPU_METRICS && sample->gpu < GPUS_SHOWN; i++) {
		struct buf *out = &p->sink.lines.pending;
		struct open_event open;
		uint64_t track;

		if (!gpu_metric_is_drawn(sample, i))
			continue;
		track = perfetto_metric_track(p->tracks, sample->gpu, i);
		open = event_begin(out, sample->begin_ns, TYPE_COUNTER, track);
		if (gpu_metric_info(i)->is_rate)
			pb_varint(out, EVENT_COUNTER_VALUE, (uint64_t)sample->value[i]);
		else
			pb_double(out, EVENT_DOUBLE_COUNTER_VALUE, (double)sample->value[i] / 100);
		event_end(out, open);
	}
}
