// SPDX-License-Identifier: MIT
#include "agent/agent_failure.h"

#include <stdint.h>

#include "base/array.h"
#include "base/text.h"

/* cuptiGetVersion from which agents finalize it; from which profilers can share it */
#define LEAVABLE  24
#define SHAREABLE 130300

/* CUptiResult (cupti_result.h of CUDA 13.0), those that a user can do something about. */
static const struct advice {
	int32_t code;
	const char *text;
} advices[] = {
	{ 8, "the process or the GPU is out of memory" },
	{ 27, "CUPTI does not support this GPU or this system" },
	{ 33, "this is a virtual GPU that does not allow profiling: its host can allow it" },
	{ 35, "the driver lets only root profile: run the program as root, or load the nvidia "
	      "module with NVreg_RestrictProfilingToAdminUsers=0" },
	{ 36, "the program itself uses CUPTI's profiling interface" },
	{ 40, "this virtual GPU does not allow profiling: its host can allow it" },
	{ 41, "confidential computing is on, and does not allow profiling" },
	{ 43, "CUPTI does not support this MIG instance" },
	{ 45, "CUPTI needs a newer driver under WSL" },
};

void agent_failure_advice(struct buf *out, int32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		if (advices[i].code == code)
			buf_printf(out, ": %s", advices[i].text);
	}
}

/* The wheel of the CUDA that the driver was made for; that of CUDA 13 has no number in its name. */
static const char *wheel(uint32_t driver_version)
{
	if (driver_version >= 13000)
		return "nvidia-cuda-cupti";
	return driver_version && driver_version < 12000 ? "nvidia-cuda-cupti-cu11"
	                                                : "nvidia-cuda-cupti-cu12";
}

static void add_text(struct buf *out, const char *before, const char *text, const char *after)
{
	if (!*text)
		return;
	buf_puts(out, before);
	text_add_safe(out, text);
	buf_puts(out, after);
}

static void add_busy(struct buf *out, pid_t pid, const struct agent_shared *shared)
{
	buf_puts(out, "another profiler (");
	text_add_safe(out, *shared->text ? shared->text : "nsys, torch.profiler");
	buf_printf(out,
	           ") is using CUPTI in process %d, and %s: end that profiler (torch.profiler "
	           "gives CUPTI back only with TEARDOWN_CUPTI=1 in the environment), or go on "
	           "without GPU times",
	           pid,
	           shared->cupti_version < SHAREABLE ? "until CUDA 13.3 CUPTI serves one at a time"
	                                             : "lets no other profiler in");
}

static void add_no_cupti(struct buf *out, pid_t pid, const struct agent_shared *shared)
{
	buf_printf(out, "no libcupti was found for process %d", pid);
	add_text(out, " (tried ", shared->text, ")");
	buf_printf(out,
	           ": install the CUDA toolkit's CUPTI, `pip install %s`, or name one by --cupti "
	           "PATH",
	           wheel(shared->driver_version));
}

static void add_foreign(struct buf *out, pid_t pid, const struct agent_shared *shared)
{
	uint32_t major = shared->driver_version / 1000;

	buf_printf(out, "the libcupti of process %d", pid);
	add_text(out, ", ", shared->cupti_path, ",");
	buf_puts(out, " does not fit its driver or is too old");
	add_text(out, " (", shared->text, ")");
	if (major == 12 || major == 13)
		buf_printf(out, ": it has to be of CUDA %u or %u", major - 1, major);
	buf_printf(out, ": `pip install %s`, or name another one by --cupti PATH",
	           wheel(shared->driver_version));
}

static void add_error(struct buf *out, pid_t pid, const struct agent_shared *shared)
{
	buf_printf(out, "CUPTI does not work in process %d", pid);
	add_text(out, ": ", shared->text, "");
	buf_printf(out, "%s error %d", *shared->text ? " gave" : ":", shared->code);
	agent_failure_advice(out, shared->code);
}

void agent_failure_text(struct buf *out, pid_t pid, const struct agent_shared *shared)
{
	switch (shared->failure) {
	case AGENT_NO_CUDA:
		buf_printf(out, "CUDA does not work in process %d", pid);
		add_text(out, " (", shared->text, ")");
		buf_puts(out, ": GPU times need its libcuda.so.1 and a GPU");
		break;
	case AGENT_NO_CUPTI:
		add_no_cupti(out, pid, shared);
		break;
	case AGENT_CUPTI_BUSY:
		add_busy(out, pid, shared);
		break;
	case AGENT_CUPTI_FOREIGN:
		add_foreign(out, pid, shared);
		break;
	case AGENT_CUPTI_ERROR:
		add_error(out, pid, shared);
		break;
	case AGENT_NO_MEMORY:
		buf_printf(out, "process %d has no memory left for GPU times", pid);
		add_text(out, " (", shared->text, ")");
		break;
	case AGENT_BAD_HELLO:
		buf_printf(out,
		           "process %d holds the agent of another version of cuscope: GPU times "
		           "need a fresh start of the process",
		           pid);
		break;
	default:
		buf_printf(out, "the agent in process %d gave up and did not say why", pid);
		add_text(out, ": ", shared->text, "");
	}
}

void agent_note_text(struct buf *out, pid_t pid, enum agent_state state,
                     const struct agent_shared *shared)
{
	if (state == AGENT_RUNNING && shared->nodes_instead)
		buf_printf(
			out,
			"graph launches of process %d are measured node by node: measuring them as "
			"wholes works only if cuscope starts the program and measures all the time",
			pid);
	if (state != AGENT_OFF || !shared->leftover)
		return;
	if (shared->cupti_version && shared->cupti_version < LEAVABLE)
		buf_printf(
			out,
			"CUPTI stays in process %d, because a CUPTI older than that of CUDA 12.6 "
			"cannot be left safely: some of its cost stays until the process ends",
			pid);
	else if (shared->leftover == AGENT_LEFT_SHARED)
		buf_printf(out,
		           "CUPTI stays in process %d, because other profilers may use it: some of "
		           "its cost may stay until the process ends",
		           pid);
	else
		buf_printf(out,
		           "CUPTI stays in process %d, because it used CUDA graphs while it was "
		           "measured: until it ends, each launch takes about 0.3 us more and each "
		           "graph launch 0.9 us (on an H200)",
		           pid);
}
