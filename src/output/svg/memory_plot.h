/* SPDX-License-Identifier: MIT */
/*
 * Memory over time, as a picture: live bytes by process and by kind of memory, the peak, and
 * allocations that failed. Feed it with samples as they come and draw it as often as wanted; what
 * is drawn is the state so far.
 *
 *	plot = memory_plot_new(run->begin_ns);
 *	memory_plot_sample(plot, now, process, MEMORY_DEVICE, 1 << 20);
 *	memory_plot_draw(plot, &(struct memory_plot_frame){ .end_ns = now }, &svg);
 *	file_replace("memory.svg", &svg, err);
 *
 * Its memory, about 700 KiB, does not grow with the number of samples. Time is divided into 512
 * buckets, of which each keeps its lowest, highest and last moment. When they no longer reach, they
 * are merged in pairs. Only processes that hold memory add to it.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "trace/event.h"

struct memory_plot;

/* `begin_ns`: the left edge. All times are of one clock, in ns; one that goes back counts
 * as now. */
struct memory_plot *memory_plot_new(uint64_t begin_ns);
void memory_plot_free(struct memory_plot *plot);

/*
 * From `time_ns` on, the process holds so many live bytes of that kind. What it said last stays
 * until then. Of `process` only id, pid and comm are read, during the call; the id tells processes
 * apart.
 */
void memory_plot_sample(struct memory_plot *plot, uint64_t time_ns, const struct process *process,
                        enum api_memory kind, uint64_t live_bytes);

/* An allocation of so many bytes was refused. */
void memory_plot_failure(struct memory_plot *plot, uint64_t time_ns, const struct process *process,
                         enum api_memory kind, uint64_t bytes);

struct memory_plot_frame {
	uint64_t end_ns;     /* the right edge; before the last sample: that */
	const char *subject; /* above the picture: the command, the host; NULL: nothing */
	const char *note;    /* below it: what was missed; NULL: nothing */
};

/* Appends an SVG file. */
void memory_plot_draw(struct memory_plot *plot, const struct memory_plot_frame *frame,
                      struct buf *svg);
