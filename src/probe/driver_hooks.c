// SPDX-License-Identifier: MIT
#include "probe/driver_hooks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/array.h"
#include "base/later.h"
#include "base/xalloc.h"
#include "probe/bpf_call.h"

static const struct {
	const char *program, *event;
	bool optional; /* a system call that not every architecture has */
} points[] = {
	{ "driver_ioctl", "sys_enter_ioctl", false },
	{ "driver_ioctl_left", "sys_exit_ioctl", false },
	{ "driver_open", "sys_enter_open", true },
	{ "driver_open_left", "sys_exit_open", true },
	{ "driver_openat", "sys_enter_openat", false },
	{ "driver_openat_left", "sys_exit_openat", false },
	{ "driver_openat2", "sys_enter_openat2", false },
	{ "driver_openat2_left", "sys_exit_openat2", false },
	{ "driver_close", "sys_enter_close", false },
	{ "driver_close_left", "sys_exit_close", false },
	{ "driver_mmap", "sys_enter_mmap", false },
	{ "driver_mmap_left", "sys_exit_mmap", false },
	{ "driver_poll", "sys_enter_poll", true },
	{ "driver_poll_left", "sys_exit_poll", true },
	{ "driver_ppoll", "sys_enter_ppoll", false },
	{ "driver_ppoll_left", "sys_exit_ppoll", false },
};

const char *const driver_hook_programs[] = {
	"driver_ioctl",      "driver_ioctl_left",   "driver_open",
	"driver_open_left",  "driver_openat",       "driver_openat_left",
	"driver_openat2",    "driver_openat2_left", "driver_close",
	"driver_close_left", "driver_mmap",         "driver_mmap_left",
	"driver_poll",       "driver_poll_left",    "driver_ppoll",
	"driver_ppoll_left", "driver_exit",         NULL
};

struct driver_hooks {
	int events[ARRAY_SIZE(points)], exits;
};

/* The perf event of a tracepoint with its program, or a negative errno. */
static int attach(struct programs *programs, const char *program, const char *name)
{
	char path[96], text[32] = "";
	int fd, event, r = 0;

	snprintf(path, sizeof(path), "events/syscalls/%s/id", name);
	fd = tracefs_open(path);
	if (fd < 0)
		return fd;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		r = -EIO;
	close(fd);
	event = r ? r : perf_tracepoint_open(atoi(text));
	if (event < 0)
		return event;
	if (ioctl(event, PERF_EVENT_IOC_SET_BPF, programs_fd(programs, program)) ||
	    ioctl(event, PERF_EVENT_IOC_ENABLE, 0))
		r = -errno;
	if (!r)
		return event;
	close(event);
	return r;
}

int driver_hooks_attach(struct programs *programs, struct driver_hooks **hooks, struct err *err)
{
	struct driver_hooks *h = xcalloc(1, sizeof(*h));

	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		h->events[i] = -1;
	h->exits =
		bpf_raw_tracepoint_open("sched_process_exit", programs_fd(programs, "driver_exit"));
	/* from the last on: of each call first its end, or that of another would end it */
	for (size_t i = ARRAY_SIZE(points); i--;) {
		int event = attach(programs, points[i].program, points[i].event);

		h->events[i] = event;
		if (event >= 0 || (points[i].optional && event == -ENOENT))
			continue;
		driver_hooks_detach(h);
		return err_set(err, event,
		               "--kernel: attaching to the tracepoint syscalls:%s: %s%s",
		               points[i].event, strerror(-event),
		               event == -ENOENT || event == -ENODEV
		                       ? " (the kernel needs CONFIG_FTRACE_SYSCALLS, and tracefs)"
		                       : "");
	}
	*hooks = h;
	return 0;
}

/* Each waits for a grace period of the kernel's, one after the other: 1.3 s in all on an H200's
 * machine, and 14 s on two busy processors. */
void driver_hooks_detach(struct driver_hooks *hooks)
{
	int fds[ARRAY_SIZE(points)];
	size_t n = 0;

	if (!hooks)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		if (hooks->events[i] >= 0)
			fds[n++] = hooks->events[i];
	}
	close_at_leisure(fds, n);
	if (hooks->exits >= 0)
		close(hooks->exits);
	free(hooks);
}

void driver_hooks_stop(struct programs *programs)
{
	static const struct timespec settles = { .tv_nsec = 1000000 };
	struct wire_state *state = programs_state(programs);

	for (size_t i = 0; i < WIRE_DEVICES; i++)
		__atomic_store_n(&state->devices[i].kind, 0, __ATOMIC_RELEASE);
	nanosleep(&settles, NULL); /* a program that runs meanwhile takes microseconds */
}

void driver_hooks_tell(struct programs *programs, const struct wire_device devices[WIRE_DEVICES],
                       const struct wire_window windows[WIRE_UVM_NUMBERS])
{
	struct wire_state *state = programs_state(programs);

	if (memcmp(state->uvm_windows, windows, sizeof(state->uvm_windows)))
		memcpy(state->uvm_windows, windows, sizeof(state->uvm_windows));
	for (size_t i = 0; i < WIRE_DEVICES; i++) {
		if (!memcmp(&state->devices[i], &devices[i], sizeof(devices[i])))
			continue;           /* calls go on meanwhile */
		state->devices[i].kind = 0; /* last, so that a half is never one */
		state->devices[i].major = devices[i].major;
		state->devices[i].first = devices[i].first;
		state->devices[i].last = devices[i].last;
		__atomic_store_n(&state->devices[i].kind, devices[i].kind, __ATOMIC_RELEASE);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

#define CALLS_MAX 8192 /* twice what the map holds: a key that goes away makes it begin anew */

void driver_hooks_open_calls(struct programs *programs, programs_record_fn each, void *data)
{
	int map = programs_map(programs, "driver_calls");
	uint32_t *tids = xcalloc(CALLS_MAX, sizeof(*tids));
	struct wire_driver_call call;
	struct timespec now;
	uint64_t now_ns;
	size_t n = 0;

	while (n < CALLS_MAX && !bpf_map_get_next_key(map, n ? &tids[n - 1] : NULL, &tids[n]))
		n++;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (size_t i = 0; i < n; i++) {
		if (bpf_map_lookup_and_delete_elem(map, &tids[i], &call) &&
		    (bpf_map_lookup_elem(map, &tids[i], &call) ||
		     bpf_map_delete_elem(map, &tids[i])))
			continue;
		if (call.head.type != WIRE_DRIVER_CALL || !call.head.hook || call.begin_ns > now_ns)
			continue;
		call.head.flags |= WIRE_UNFINISHED;
		call.head.time_ns = now_ns;
		call.head.bytes = WIRE_DRIVER_DATA;
		each(data, &call.head, WIRE_DRIVER_BYTES(WIRE_DRIVER_DATA));
	}
	free(tids);
}
