// SPDX-License-Identifier: MIT
/* Of account.h: the words of causes, for programs and for people. */
#include "account/account.h"

static const struct {
	const char *name, *text;
} words[ACCOUNT_CAUSES] = {
	[ACCOUNT_UNKNOWN] = { "unknown", "not known" },
	[ACCOUNT_HOST] = { "host", "host, outside of CUDA" },
	[ACCOUNT_KERNELS] = { "kernels", "GPU runs kernels" },
	[ACCOUNT_COPIES] = { "copies", "GPU copies" },
	[ACCOUNT_COMMUNICATION] = { "communication", "GPUs communicate" },
	[ACCOUNT_GPU_WAIT] = { "gpu_wait", "waiting for the GPU" },
	[ACCOUNT_TURNAROUND] = { "turnaround", "from one kernel to the next" },
	[ACCOUNT_STREAM_WAIT] = { "stream_wait", "streams wait" },
	[ACCOUNT_LAUNCHING] = { "launching", "launching" },
	[ACCOUNT_SYNCHRONISATION] = { "synchronisation", "after waits for the GPU" },
	[ACCOUNT_ALLOCATION] = { "allocation", "allocating GPU memory" },
	[ACCOUNT_COPY_CALL] = { "copy_call", "in copies it waits for" },
	[ACCOUNT_DRIVER] = { "driver", "in other CUDA calls" },
	[ACCOUNT_COMPUTING] = { "computing", "computing" },
	[ACCOUNT_GIL] = { "gil", "GIL held by another thread" },
	[ACCOUNT_NO_CPU] = { "no_cpu", "ready, without a CPU" },
	[ACCOUNT_SLEEP] = { "sleep", "asleep" },
	[ACCOUNT_DISK] = { "disk", "waiting for a disk" },
	[ACCOUNT_NETWORK] = { "network", "waiting for a socket" },
	[ACCOUNT_PIPE] = { "pipe", "waiting for a pipe" },
	[ACCOUNT_LOCK] = { "lock", "waiting for a lock" },
	[ACCOUNT_CHILD] = { "child", "waiting for a child" },
	[ACCOUNT_FAULT] = { "fault", "waiting for a page of memory" },
	[ACCOUNT_SWAP] = { "swap", "waiting for swapped memory" },
	[ACCOUNT_OTHER_WAIT] = { "wait", "blocked" },
};

const char *account_cause_name(enum account_cause cause)
{
	return words[cause].name;
}

const char *account_cause_text(enum account_cause cause)
{
	return words[cause].text;
}
