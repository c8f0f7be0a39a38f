// SPDX-License-Identifier: MIT
/*
 * The program that calls NVML, or CUPTI's PM sampling, for cuscope, which carries it and runs it as
 *a process of its own (nvml_process.h):
 *
 *	cuscope-nvml WANTED INTERVAL_NS PARENT FOLDERS
 *
 * It is linked with the C library alone, dynamically, so that it can load the driver's library
 *where cuscope is a static program. A driver that hangs hangs this process and not cuscope.
 */
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own_memory.h"
#include "gpus/nvml/gpu_threads.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define CAPABILITY(number) (1u << ((number) % 32))

/*
 * Of the capabilities those stay by which a driver that lets only administrators profile knows one.
 * Without privileges a program that it executes gets none either.
 */
static void give_up_rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	struct rlimit none = { 0, 0 };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
	if (syscall(SYS_capget, &head, data))
		return;
	data[0].permitted &= CAPABILITY(CAP_SYS_ADMIN);
	data[1].permitted &= CAPABILITY(CAP_PERFMON);
	for (int i = 0; i < 2; i++) {
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &head, data);
}

/* Until cuscope closes its end. */
static void beat_on(struct gpu_threads *threads)
{
	struct pollfd cuscope = { .fd = NVML_WIRE_SOCKET, .events = POLLIN };
	struct nvml_message message = { .head.kind = NVML_MESSAGE_BEAT };

	while (poll(&cuscope, 1, NVML_WIRE_BEAT_NS / 1000000) <= 0 &&
	       !gpu_threads_are_stuck(threads)) {
		gpu_threads_beat(threads, &message.beat);
		message.beat.cpu_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
		message.beat.resident_bytes = own_resident_bytes();
		send_message(&message);
	}
}

int main(int argc, char **argv)
{
	struct gpu_threads *threads;
	unsigned long wanted;

	if (argc != 5)
		return 2;
	wanted = strtoul(argv[1], NULL, 10);
	prctl(PR_SET_NAME, NVML_WIRE_NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != (pid_t)strtol(argv[3], NULL, 10) || wanted >= NVML_WANTED_END)
		return 2;
	syscall(SYS_close_range, NVML_WIRE_SOCKET + 1, ~0u, 0);
	give_up_rights();
	threads = gpu_threads_start((enum nvml_wanted)wanted, strtoull(argv[2], NULL, 10), argv[4]);
	if (threads)
		beat_on(threads);
	_exit(threads ? 0 : 1);
}
