// SPDX-License-Identifier: MIT
/* Why kernels wait, as agents tell it: events, and sentences on what keeps them from it. */
#include "capture/gpu/gpu_private.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent_failure.h"
#include "base/buf.h"
#include "trace/format.h"

#define FUTURE_NS   3000000000ull  /* an end that lies further ahead is none */
#define WINDOW_MOST 10000000000ull /* ns; one of an agent's is 20 ms long */
#define REASON_MOST 64             /* bytes; CUPTI's are half as long */
#define FILE_MOST   256

/* ---- events -------------------------------------------------------------------------------- */

/* The agent says itself since when it measures, and none was there before the capture. */
static bool window_is(const struct gpu_times *gpu, const struct gpu_times_process *process,
                      uint64_t begin_ns, uint64_t end_ns)
{
	return begin_ns >= gpu->begin_ns && begin_ns >= process->since_ns && begin_ns <= end_ns &&
	       end_ns - begin_ns < WINDOW_MOST && end_ns <= gpu->now_ns + FUTURE_NS;
}

static void pass(struct gpu_times *gpu, const struct gpu_times_process *process,
                 const struct stall *stall)
{
	const struct event event = {
		.type = EVENT_STALL,
		.time_ns = stall->end_ns,
		.process = pipeline_process(gpu->options.pipeline, process->pid),
		.stall = stall,
	};
	int r = pipeline_pass(gpu->options.pipeline, &event, &gpu->failure);

	if (r && !gpu->failure.code)
		err_set(&gpu->failure, r, "passing stall reasons on");
}

static bool take_stall(struct gpu_times *gpu, struct gpu_times_process *process,
                       const struct agent_stall *record)
{
	const char *name = gpu_records_name(process->records, record->reason);
	const char *path = record->file ? gpu_records_name(process->records, record->file) : NULL;
	char reason[REASON_MOST], file[FILE_MOST];
	struct stall stall = {
		.begin_ns = record->begin_ns,
		.end_ns = record->end_ns,
		.kernel = gpu_records_kernel(process->records, record->kernel),
		.reason = reason,
		.cubin = record->cubin,
		.offset = record->offset,
		.samples = record->samples,
		.file = path ? file : NULL,
		.line = path ? record->line : 0,
	};

	if (!name || !stall.kernel || !window_is(gpu, process, stall.begin_ns, stall.end_ns) ||
	    stall.samples > STALL_SAMPLES_MOST)
		return false;
	snprintf(reason, sizeof(reason), "%s", name);
	if (path)
		snprintf(file, sizeof(file), "%s", path);
	pass(gpu, process, &stall);
	return true;
}

#define TOLD_DROPPED (1u << 31) /* beside enum agent_stalls_what */

/* How many is a note of the report; that there are some is a miss, once. */
static void note_dropped(struct gpu_times *gpu, struct gpu_times_process *process)
{
	if (process->stalls_told & TOLD_DROPPED)
		return;
	process->stalls_told |= TOLD_DROPPED;
	modules_lock(gpu->options.modules);
	modules_miss(gpu->options.modules, MISS_STALLS, NULL, NULL, process->pid,
	             "samples of why kernels of process %u wait were lost: 'report stalls' counts "
	             "them",
	             process->pid);
	modules_unlock(gpu->options.modules);
}

static bool take_window(struct gpu_times *gpu, struct gpu_times_process *process,
                        const struct agent_stall_window *record)
{
	const struct stall stall = {
		.begin_ns = record->begin_ns,
		.end_ns = record->end_ns,
		.samples = record->samples,
		.dropped = record->dropped,
		.foreign = record->foreign,
		.cost_ns = record->cost_ns,
	};

	if (!window_is(gpu, process, stall.begin_ns, stall.end_ns) ||
	    stall.samples > STALL_SAMPLES_MOST || stall.dropped > STALL_SAMPLES_MOST ||
	    stall.foreign > STALL_SAMPLES_MOST || stall.cost_ns > FORMAT_TIME_MAX)
		return false;
	if (stall.dropped)
		note_dropped(gpu, process);
	pass(gpu, process, &stall);
	return true;
}

/* ---- what went wrong ----------------------------------------------------------------------- */

static void add_refused(struct buf *out, const struct agent_stalls_told *record)
{
	static const char *const in[AGENT_STALLS_INS] = {
		[AGENT_STALLS_IN_DRIVER] = "the driver did not tell of its GPU",
		[AGENT_STALLS_IN_ENABLING] = "cuptiPCSamplingEnable gave",
		[AGENT_STALLS_IN_REASONS] = "cuptiPCSamplingGetStallReasons gave",
		[AGENT_STALLS_IN_CONFIGURING] = "cuptiPCSamplingSetConfigurationAttribute gave",
		[AGENT_STALLS_IN_STARTING] = "cuptiPCSamplingStart gave",
		[AGENT_STALLS_IN_STOPPING] = "cuptiPCSamplingStop gave",
		[AGENT_STALLS_IN_GETTING] = "cuptiPCSamplingGetData gave",
	};

	buf_puts(out, in[record->first]);
	if (record->first == AGENT_STALLS_IN_DRIVER)
		return;
	buf_printf(out, " error %d", (int)record->code);
	if (record->first == AGENT_STALLS_IN_CONFIGURING)
		buf_printf(out, " for attribute %u", (unsigned)record->second);
	agent_failure_advice(out, (int32_t)record->code);
}

/* False: it makes no sense. */
static bool add_why(struct buf *out, const struct agent_stalls_told *record)
{
	switch (record->what) {
	case AGENT_STALLS_OLD:
		buf_puts(out, "its CUPTI cannot sample beside records of kernels, as that of CUDA "
		              "12.9 and newer can: name one by --cupti PATH");
		return true;
	case AGENT_STALLS_MEMORY:
		buf_puts(out, "its GPU has only ");
		buf_bytes(out, record->first);
		buf_puts(out, " free, and CUPTI's buffer with a margin takes ");
		buf_bytes(out, record->second);
		return true;
	case AGENT_STALLS_REFUSED:
		if (record->first >= AGENT_STALLS_INS)
			return false;
		add_refused(out, record);
		return true;
	case AGENT_STALLS_FULL:
		buf_puts(out, "CUPTI's buffer was full, and gave none of a window's samples");
		return true;
	case AGENT_STALLS_SLOW:
		if (record->second >= AGENT_STALLS_INS)
			return false;
		buf_printf(out,
		           "a call of CUPTI's took %.0f ms, for which the program may have "
		           "waited: it is not called again",
		           (double)record->first / 1e6);
		return true;
	case AGENT_STALLS_CALLS:
		buf_puts(out, "for seconds one of its threads was in a call of the driver, or "
		              "captured a graph, and nothing may be sampled meanwhile");
		return true;
	case AGENT_STALLS_WORK:
		buf_puts(out, "its GPU was for seconds never done with what it had to do, and "
		              "sampling could not be ended");
		return true;
	case AGENT_STALLS_NAMES:
		buf_puts(out, "CUPTI had allocated so many names of kernels, which nobody may "
		              "free, that sampling ended");
		return true;
	}
	return false;
}

static bool take_told(struct gpu_times *gpu, struct gpu_times_process *process,
                      const struct agent_stalls_told *record)
{
	AT_END(buf_free) struct buf out = { 0 };

	if (record->what == AGENT_STALLS_BEGUN)
		return true;
	if (record->what >= AGENT_STALLS_WHATS || process->stalls_told & 1u << record->what)
		return false; /* each once, whatever numbers are in it */
	buf_printf(&out, "no stall reasons of process %u%s: ", process->pid,
	           record->what == AGENT_STALLS_FULL || record->what == AGENT_STALLS_SLOW ||
	                           record->what == AGENT_STALLS_CALLS ||
	                           record->what == AGENT_STALLS_WORK
	                   ? ", or not all"
	                   : "");
	if (!add_why(&out, record))
		return false;
	process->stalls_told |= 1u << record->what;
	gpu_tell_stalls(gpu, process, out.data);
	return true;
}

bool gpu_take_stalls(struct gpu_times *gpu, struct gpu_times_process *process,
                     const struct agent_head *record)
{
	if (!(gpu->options.settings->kinds & AGENT_WANT_STALLS)) /* nobody asked */
		return false;
	switch (record->type) {
	case AGENT_STALL:
		return take_stall(gpu, process, (const struct agent_stall *)record);
	case AGENT_STALL_WINDOW:
		return take_window(gpu, process, (const struct agent_stall_window *)record);
	default:
		return take_told(gpu, process, (const struct agent_stalls_told *)record);
	}
}
