// SPDX-License-Identifier: MIT
#include "probe/driver_hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/later.h"
#include "base/xalloc.h"
#include "probe/bpf_call.h"

static const struct {
	const char *program, *event;
	bool optional; /* a system call that not every architecture has */
} points[] = {
	{ "driver_ioctl", "syscalls/sys_enter_ioctl", false },
	{ "driver_ioctl_left", "syscalls/sys_exit_ioctl", false },
	{ "driver_open", "syscalls/sys_enter_open", true },
	{ "driver_open_left", "syscalls/sys_exit_open", true },
	{ "driver_openat", "syscalls/sys_enter_openat", false },
	{ "driver_openat_left", "syscalls/sys_exit_openat", false },
	{ "driver_openat2", "syscalls/sys_enter_openat2", false },
	{ "driver_openat2_left", "syscalls/sys_exit_openat2", false },
	{ "driver_close", "syscalls/sys_enter_close", false },
	{ "driver_close_left", "syscalls/sys_exit_close", false },
	{ "driver_mmap", "syscalls/sys_enter_mmap", false },
	{ "driver_mmap_left", "syscalls/sys_exit_mmap", false },
	{ "driver_poll", "syscalls/sys_enter_poll", true },
	{ "driver_poll_left", "syscalls/sys_exit_poll", true },
	{ "driver_ppoll", "syscalls/sys_enter_ppoll", false },
	{ "driver_ppoll_left", "syscalls/sys_exit_ppoll", false },
};

#define EXIT_PROGRAM "driver_exit"

void driver_hooks_choose(struct bpf_object *object, bool wanted)
{
	static const char *const maps[] = { "driver_calls", "blank_driver_call" };

	for (size_t i = 0; i <= ARRAY_SIZE(points); i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(
			object, i < ARRAY_SIZE(points) ? points[i].program : EXIT_PROGRAM);

		if (program && !wanted)
			bpf_program__set_autoload(program, false);
	}
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, maps[i]);

		if (map)
			bpf_map__set_autocreate(map, wanted);
	}
}

struct driver_hooks {
	int events[ARRAY_SIZE(points)], exits;
};

/* The perf event of a tracepoint with its program, or a negative errno. */
static int attach(struct programs *programs, const char *program, const char *name)
{
	int event = perf_tracepoint_open(name), r;

	r = event < 0 ? event : perf_event_run(event, programs_fd(programs, program));
	if (!r)
		return event;
	if (event >= 0)
		close(event);
	return r;
}

int driver_hooks_attach(struct programs *programs, struct driver_hooks **hooks, struct err *err)
{
	struct driver_hooks *h = xcalloc(1, sizeof(*h));

	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		h->events[i] = -1;
	h->exits =
		bpf_raw_tracepoint_open("sched_process_exit", programs_fd(programs, EXIT_PROGRAM));
	/* from the last on: of each call first its end, or that of another would end it */
	for (size_t i = ARRAY_SIZE(points); i--;) {
		int event = attach(programs, points[i].program, points[i].event);

		h->events[i] = event;
		if (event >= 0 || (points[i].optional && event == -ENOENT))
			continue;
		driver_hooks_detach(h);
		return err_set(err, event,
		               "--kernel: attaching to the tracepoint syscalls:%s: %s%s",
		               points[i].event + strlen("syscalls/"), strerror(-event),
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
	size_t n;
	AT_END(at_end_free) uint32_t *tids = bpf_map_keys(map, sizeof(*tids), CALLS_MAX, &n);
	uint64_t now_ns = clock_now_ns();
	struct wire_driver_call call;

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
}
