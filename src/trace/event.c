// SPDX-License-Identifier: MIT
#include "trace/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/xalloc.h"

const struct event_words activity_words[ACTIVITY_COUNT] = {
	[ACTIVITY_KERNEL] = { "kernel", "kernel", "gpu,launch,kernel", "kernel", "kernel",
	                      "kernels", "kernels", .profile = "GPU_Kernel" },
	[ACTIVITY_COPY] = { "copy", "copy", "gpu,transfer,memcpy", "copy", "gpu_memcpy", "copies",
	                    "copies", "Memcpy", .profile = "GPU_Copy" },
	[ACTIVITY_SET] = { "set", "set", "gpu,transfer,memset", "set", "gpu_memset", "sets", "sets",
	                   "Memset", "[CUDA memset]", "GPU_Set" },
	/* to readers of Chrome's traces it is time of the GPU as a kernel's is */
	[ACTIVITY_GRAPH_RUN] = { "graph", "graph", "gpu,launch,graph", "graph", "kernel", "graphs",
	                         "graph launches", "Graph", "[CUDA graph]", "GPU_Graph" },
};

const struct event_words range_words[RANGE_COUNT] = {
	[RANGE_PUSHPOP] = { "push_pop", "range", "nvtx,range,push_pop", "nvtx", NULL,
	                    "nvtx_push_pop", "NVTX ranges" },
	[RANGE_STARTEND] = { "start_end", "range", "nvtx,range,start_end", "nvtx", NULL,
	                     "nvtx_start_end", "NVTX start-end ranges" },
	[RANGE_MARK] = { "mark", "mark", "nvtx,range,mark", "nvtx", NULL, "nvtx_marks",
	                 "NVTX marks" },
	[RANGE_SYNC] = { "wait", "wait", "gpu,sync,wait", "wait", NULL, "syncs", "waits" },
	[RANGE_OVERHEAD] = { "overhead", "overhead", "gpu,other,overhead", "overhead", NULL,
	                     "overheads", "overheads" },
	[RANGE_NOT_MEASURED] = { "not_measured", "not measured", "gpu,other,not_measured",
	                         "not measured", NULL, "not_measured", "times without measuring" },
};

static const char *const texts[LOST_COUNT] = {
	[LOST_RING_FULL] = "ring full: the reader did not keep up (--ring-size makes it larger)",
	[LOST_THREADS_FULL] = "more threads or processes than there is room for",
	[LOST_NO_ENTRY] = "returns of calls that began before the trace",
	[LOST_TOO_DEEP] = "nested too deep to be followed",
	[LOST_UNREADABLE] = "calls with arguments in memory that could not be read",
	[LOST_LATE] = "delivered too late for their place in time (shown out of order)",
	[LOST_GPU_RING] = "GPU times: the target's ring was full (--ring-size makes it larger)",
	[LOST_GPU_BUFFERS] = "GPU times: CUPTI had no buffer left",
	[LOST_GPU_TIMES] = "GPU times: activities and ranges with impossible times, left out",
	[LOST_RECORDS] = "ring full: news of processes, threads, names and libraries "
			 "(--ring-size makes it larger)",
	[LOST_TARGETS_FULL] = "processes that were not traced: more than there is room for",
	[LOST_TEXTS] = "names and other texts that were cut or could not be read",
	[LOST_NOT_RUN] = "times that the kernel left an eBPF program out, as it was under way",
	[LOST_GPU_CALLS] = "GPU times: work whose call is not known",
	[LOST_SUMS] = "calls that found no room in the kernel's maps: sums are short of them",
	[LOST_GPU_RECORDS] = "GPU times: records that made no sense, left out",
	[LOST_NO_ANSWER] = "reads of a target's memory or files that were not answered",
	[LOST_OVER_BUDGET] = "names, stacks and records beyond the memory that is kept of a target",
	[LOST_GPU_UNRECORDED] = "GPU times: launches whose work still ran, or was not handed over, "
				"when their process ended",
	[LOST_MOMENTS] = "samples, switches of threads and interrupts that the kernel left out, "
			 "as an eBPF program was under way",
	[LOST_QUEUE] = "calls that an agent told of beyond the memory that is kept of a target",
};

const char *lost_reason_text(enum lost_reason reason)
{
	return reason < LOST_COUNT ? texts[reason] : "?";
}

#define PYTHON_NOT_READ                                                                            \
	" whose frames are not read (3.9 to 3.14 are, but for debug and free-threaded builds)"
#define MAPPINGS_LEFT_OUT " than the 1,024 that are kept: stacks end in the others"
#define READ_TOO_LONG     ": to read its user's files takes too long"
#define TOO_FAST          ", 10,000 a second of a thread"

const char *stacks_missed_text(enum stacks_missed missed, uint64_t n)
{
	static const struct {
		const char *one, *many;
	} of[STACKS_MISSED_COUNT] = {
		[STACKS_NO_WALK] = { "sample or call came where no stack could be walked",
		                     "samples and calls came where no stack could be walked" },
		[STACKS_LOST] = { "sample or call is without its stack, which was lost",
		                  "samples and calls are without their stacks, which were lost" },
		[STACKS_PROCESSES] = { "process was more than stacks are walked of",
		                       "processes were more than stacks are walked of" },
		[STACKS_FILES] = { "file had no room for its unwind table: stacks end there",
		                   "files had no room for their unwind tables: stacks end there" },
		[STACKS_PYTHON] = { "process runs a Python" PYTHON_NOT_READ,
		                    "processes run a Python" PYTHON_NOT_READ },
		[STACKS_PYTHON_LOST] = { "frame of Python has no name",
		                         "frames of Python have no name" },
		[STACKS_NO_ROOM] = { "name or stack had no room", "names and stacks had no room" },
		[STACKS_TOO_FAST] = { "allocation came faster than stacks are walked" TOO_FAST,
		                      "allocations came faster than their stacks are "
		                      "walked" TOO_FAST },
		[STACKS_LINES_LATE] = { "place of native code is without its line: there was no "
		                        "time left to look it up",
		                        "places of native code are without lines: there was no "
		                        "time left to look them up" },
		[STACKS_LINES_LOST] = { "place of native code is without its line: the debug "
		                        "information of its file could not be read",
		                        "places of native code are without lines: the debug "
		                        "information of their files could not be read" },
		[STACKS_MAPPINGS] = { "process has more executable mappings" MAPPINGS_LEFT_OUT,
		                      "processes have more executable mappings" MAPPINGS_LEFT_OUT },
		[STACKS_WAKERS] = { "process that targets wait for was more than are sampled",
		                    "processes that targets wait for were more than are sampled" },
		[STACKS_NAMES_LATE] = { "frame of native code is without its "
		                        "function" READ_TOO_LONG,
		                        "frames of native code are without "
		                        "functions" READ_TOO_LONG },
	};

	if (missed >= STACKS_MISSED_COUNT)
		return "?";
	return n == 1 ? of[missed].one : of[missed].many;
}

uint64_t run_scaled(const struct run_info *run, uint64_t count)
{
	if (run->estimate_scale <= 1)
		return count;
	return number_rounded((double)count * run->estimate_scale);
}

int consumers_begin(struct consumer *const *consumers, size_t n, const struct run_info *run,
                    struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (consumers[i]->ops->begin)
			r = consumers[i]->ops->begin(consumers[i], run, err);
	}
	return r;
}

int consumers_flush(struct consumer *const *consumers, size_t n, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (consumers[i]->ops->flush)
			r = consumers[i]->ops->flush(consumers[i], err);
	}
	return r;
}

void consumers_add_failure(struct run_info *told, const struct run_info *run, const char *why)
{
	struct miss *misses = xcalloc(run->n_misses + 1, sizeof(*misses));

	*told = *run;
	if (run->n_misses)
		memcpy(misses, run->misses, run->n_misses * sizeof(*misses));
	misses[told->n_misses++] = (struct miss){ .kind = MISS_FAILED, .why = why };
	told->misses = misses;
}

/* A run that failed itself is told of by that: what is written with it tells the same once more. */
static bool has_failed(const struct run_info *run)
{
	for (size_t i = 0; i < run->n_misses; i++) {
		if (run->misses[i].kind == MISS_FAILED)
			return true;
	}
	return false;
}

int consumers_end(struct consumer *const *consumers, size_t n, const struct run_info *run,
                  struct err *err)
{
	struct run_info failed = { 0 };
	struct err first = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };
		int r = consumers[i]->ops->end ? consumers[i]->ops->end(consumers[i], run, &one)
		                               : 0;

		if (!r || first.code)
			continue;
		first = one;
		first.code = r;
		if (has_failed(run))
			continue;
		consumers_add_failure(&failed, run, first.text);
		run = &failed;
	}
	free((void *)failed.misses);
	if (first.code)
		*err = first;
	return first.code;
}

void consumer_free(struct consumer *consumer)
{
	if (consumer)
		consumer->ops->free(consumer);
}
