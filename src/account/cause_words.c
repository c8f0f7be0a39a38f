// SPDX-License-Identifier: MIT
/* Of account.h: the words of causes, for programs and for people. */
#include "account/account.h"

static const struct {
	const char *name, *text, *about;
} words[ACCOUNT_CAUSES] = {
	[ACCOUNT_UNKNOWN] = { "unknown", "not known", "Nothing that was recorded tells." },
	[ACCOUNT_HOST] = { "host", "host, outside of CUDA",
	                   "The host is outside of CUDA; whether it computed or waited was not "
	                   "recorded." },
	[ACCOUNT_KERNELS] = { "kernels", "GPU runs kernels", "The GPU runs kernels." },
	[ACCOUNT_COPIES] = { "copies", "GPU copies", "The GPU runs copies, and no kernels." },
	[ACCOUNT_COMMUNICATION] = { "communication", "GPUs communicate",
	                            "The GPU runs kernels of communication." },
	[ACCOUNT_GPU_WAIT] = { "gpu_wait", "waiting for the GPU",
	                       "Without GPU times: the thread waits for the GPU, which may be busy "
	                       "or not." },
	[ACCOUNT_TURNAROUND] = { "turnaround", "from one kernel to the next",
	                         "From one piece of work to the next that was asked for already." },
	[ACCOUNT_STREAM_WAIT] = { "stream_wait", "streams wait",
	                          "Work that was asked for waits for an event, a host function or "
	                          "another stream." },
	[ACCOUNT_LAUNCHING] = { "launching", "launching",
	                        "The host is in calls that launch, or between those that follow on "
	                        "each other." },
	[ACCOUNT_SYNCHRONISATION] = { "synchronisation", "after waits for the GPU",
	                              "The host had waited for the GPU, which then had nothing "
	                              "more to do." },
	[ACCOUNT_ALLOCATION] = { "allocation", "allocating GPU memory",
	                         "The host is in calls that allocate or free." },
	[ACCOUNT_COPY_CALL] = { "copy_call", "in copies it waits for",
	                        "The host is in a copy that it waits for." },
	[ACCOUNT_DRIVER] = { "driver", "in other CUDA calls", "The host is in another CUDA call." },
	[ACCOUNT_COMPUTING] = { "computing", "computing", "A thread runs on a CPU." },
	[ACCOUNT_COMPILING] = { "compiling", "compiling",
	                        "A compiler runs on a CPU: nvrtc, Triton, XLA, the driver's own." },
	[ACCOUNT_GIL] = { "gil", "GIL held by another thread",
	                  "A thread waits for Python's lock, and another that has it runs in this "
	                  "place." },
	[ACCOUNT_NO_CPU] = { "no_cpu", "ready, without a CPU",
	                     "A thread could run, and had no CPU." },
	[ACCOUNT_SLEEP] = { "sleep", "asleep", "A thread waits for a time to pass." },
	[ACCOUNT_DISK] = { "disk", "waiting for a disk", "A thread waits for a disk." },
	[ACCOUNT_NETWORK] = { "network", "waiting for a socket", "A thread waits for a socket." },
	[ACCOUNT_PIPE] = { "pipe", "waiting for a pipe", "A thread waits for a pipe." },
	[ACCOUNT_LOCK] = { "lock", "waiting for a lock",
	                   "A thread waits for a mutex or a condition." },
	[ACCOUNT_CHILD] = { "child", "waiting for a child",
	                    "A thread waits for another process to end." },
	[ACCOUNT_FAULT] = { "fault", "waiting for a page of memory",
	                    "A thread touched memory whose page was not there." },
	[ACCOUNT_SWAP] = { "swap", "waiting for swapped memory",
	                   "A thread touched memory that was swapped out." },
	[ACCOUNT_OTHER_WAIT] = { "wait", "blocked", "A thread waits in another way." },
};

const char *account_cause_name(enum account_cause cause)
{
	return words[cause].name;
}

const char *account_cause_text(enum account_cause cause)
{
	return words[cause].text;
}

const char *account_cause_about(enum account_cause cause)
{
	return words[cause].about;
}
