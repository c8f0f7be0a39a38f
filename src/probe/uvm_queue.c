// SPDX-License-Identifier: MIT
/*
 * Layouts and numbers are those of kernel-open/nvidia-uvm/uvm_types.h and uvm_ioctl.h ("tools"),
 * the first of both versions of the events: it is in all open drivers from 515 to 595, and did not
 * change. Times are CLOCK_MONOTONIC_RAW in all of them (uvm_linux.h, NV_GETTIME).
 */
#include "probe/uvm_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/later.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "bpf/wire_driver.h"
#include "nvidia/devices.h"
#include "probe/helper.h"

_Static_assert(sizeof(struct uvm_control) == 528, "as the driver has it");

/* ---- the driver's interface ------------------------------------------------------------------ */

#define TOOLS_INIT_EVENT_TRACKER        56 /* the commands are numbers alone */
#define TOOLS_EVENT_QUEUE_ENABLE_EVENTS 58
#define TOOLS_FLUSH_EVENTS              67 /* of /dev/nvidia-uvm, which the others are not */
#define EVENTS_VERSION                  1
#define NV_OK                           0
#define NV_ERR_ILLEGAL_ACTION           0x16 /* it has no address space yet, or is of another kind */

struct tools_init {
	uint64_t queue, queue_entries, control;
	uint8_t processor[16]; /* of counters */
	uint32_t all_processors, uvm_fd, status;
	uint32_t requested, granted; /* versions: 550 and 555 only */
};

struct tools_enable {
	uint64_t types; /* a bit each */
	uint32_t status;
};

enum type {
	TYPE_CPU_FAULT = 1,
	TYPE_MIGRATION = 2,
	TYPE_GPU_FAULT = 3,
	TYPE_FATAL_FAULT = 6,
	TYPE_THRASHING = 10,
	TYPE_THROTTLING = 11, /* its begin */
};

static const enum type wanted[] = { TYPE_CPU_FAULT,   TYPE_MIGRATION, TYPE_GPU_FAULT,
	                            TYPE_FATAL_FAULT, TYPE_THRASHING, TYPE_THROTTLING };

#define ACCESS_WRITE  2
#define ACCESS_ATOMIC 3

/* By UvmEventMigrationCause: none, user, coherence, prefetch, eviction, access counters. */
static const uint8_t causes[] = { DRIVER_NOT_KNOWN, 6, 0, 3, 4, 2 };

/* ---- events ---------------------------------------------------------------------------------- */

static uint64_t word(const uint8_t *entry, size_t at)
{
	uint64_t value;

	memcpy(&value, entry + at, sizeof(value));
	return value;
}

static uint64_t ours(uint64_t raw_ns, int64_t offset_ns)
{
	return raw_ns ? raw_ns + (uint64_t)offset_ns : 0;
}

static void decode_migration(const uint8_t *entry, int64_t offset_ns, struct uvm_event *event)
{
	uint64_t gpu_ns;

	event->kind = DRIVER_MIGRATION;
	event->cause = entry[1] < ARRAY_SIZE(causes) ? causes[entry[1]] : DRIVER_NOT_KNOWN;
	event->src = entry[2];
	event->dst = entry[3];
	event->bytes = word(entry, 16);
	event->begin_ns = ours(word(entry, 24), offset_ns);
	event->end_ns = ours(word(entry, 32), offset_ns);
	/* The end is when the driver looked, which may be long after. Between two hosts no GPU
	 * tells how long it took. */
	gpu_ns = word(entry, 56) - word(entry, 48);
	if (word(entry, 48) && gpu_ns && gpu_ns < event->end_ns - event->begin_ns)
		event->end_ns = event->begin_ns + gpu_ns;
}

/* A fault of a processor, or what follows from many. Where address and time lie is the same. */
static void decode_fault(const uint8_t *entry, int64_t offset_ns, struct uvm_event *event)
{
	switch ((enum type)entry[0]) {
	case TYPE_CPU_FAULT:
		event->kind = DRIVER_CPU_FAULT;
		event->cause = entry[1] == ACCESS_WRITE || entry[1] == ACCESS_ATOMIC;
		event->dst = 0;
		memcpy(&event->tid, entry + 28, sizeof(event->tid));
		break;
	case TYPE_GPU_FAULT:
		event->kind = DRIVER_GPU_FAULT;
		event->dst = entry[3];
		break;
	case TYPE_FATAL_FAULT:
		event->kind = DRIVER_FATAL_FAULT;
		event->dst = entry[3];
		break;
	default:
		event->kind = DRIVER_THROTTLING;
		event->dst = entry[1];
	}
	event->begin_ns = event->end_ns = ours(word(entry, 16), offset_ns);
}

bool uvm_event_decode(const uint8_t entry[UVM_ENTRY], int64_t offset_ns, struct uvm_event *event)
{
	*event = (struct uvm_event){ .cause = DRIVER_NOT_KNOWN,
		                     .src = DRIVER_NOT_KNOWN,
		                     .dst = DRIVER_NOT_KNOWN,
		                     .address = word(entry, 8) };
	switch ((enum type)entry[0]) {
	case TYPE_CPU_FAULT:
	case TYPE_GPU_FAULT:
	case TYPE_FATAL_FAULT:
	case TYPE_THROTTLING:
		decode_fault(entry, offset_ns, event);
		return true;
	case TYPE_MIGRATION:
		decode_migration(entry, offset_ns, event);
		return true;
	case TYPE_THRASHING: /* a mask of processors lies where others have the address */
		event->kind = DRIVER_THRASHING;
		event->address = word(entry, 16);
		event->bytes = word(entry, 24);
		event->begin_ns = event->end_ns = ours(word(entry, 32), offset_ns);
		return true;
	}
	return false;
}

/* ---- the queue ------------------------------------------------------------------------------- */

struct uvm_queue {
	pid_t pid;
	int fd;                  /* its descriptor, of which `space` is a copy */
	int pidfd, tools, space; /* -1: of a test */
	struct uvm_control *control;
	const uint8_t *entries;
	uint32_t mask, at; /* the next entry */
	size_t bytes;      /* of the memory that is to be freed */
};

/* What makes the driver's time ours: of three readings, that in the middle. */
static int64_t clock_offset(void)
{
	uint64_t before = clock_now_ns(), raw = clock_of_ns(CLOCK_MONOTONIC_RAW);
	uint64_t after = clock_now_ns();

	return (int64_t)(before + (after - before) / 2 - raw);
}

struct uvm_queue *uvm_queue_over(void *memory, uint32_t entries)
{
	struct uvm_queue *queue = xcalloc(1, sizeof(*queue));

	queue->pidfd = queue->tools = queue->space = -1;
	queue->control = memory;
	queue->entries = (const uint8_t *)memory + UVM_CONTROL_BYTES;
	queue->mask = entries - 1;
	return queue;
}

/*
 * The last to let go of an address space whose process has ended takes it apart, which takes a
 * tenth of a second: that is for another thread. The driver has the memory under addresses of its
 * own, so ours can go before.
 */
void uvm_queue_free(struct uvm_queue *queue)
{
	if (!queue)
		return;
	if (queue->space >= 0)
		close(queue->space);
	if (queue->tools >= 0)
		close_later(queue->tools);
	if (queue->pidfd >= 0)
		close(queue->pidfd);
	if (queue->bytes)
		munmap(queue->control, queue->bytes);
	free(queue);
}

void uvm_queue_read(struct uvm_queue *queue,
                    void (*each)(void *data, const struct uvm_event *event), void *data)
{
	uint32_t end = __atomic_load_n(&queue->control->put_behind, __ATOMIC_ACQUIRE) & queue->mask;
	int64_t offset_ns = clock_offset();
	struct uvm_event event;

	while (queue->at != end) {
		const uint8_t *entry = queue->entries + (size_t)queue->at * UVM_ENTRY;

		if (uvm_event_decode(entry, offset_ns, &event))
			each(data, &event);
		queue->at = (queue->at + 1) & queue->mask;
	}
	__atomic_store_n(&queue->control->get_ahead, queue->at, __ATOMIC_RELEASE);
	__atomic_store_n(&queue->control->get_behind, queue->at, __ATOMIC_RELEASE);
}

void uvm_queue_flush(struct uvm_queue *queue)
{
	uint32_t status = 0;

	if (queue->space >= 0)
		ioctl(queue->space, TOOLS_FLUSH_EVENTS, &status);
}

bool uvm_queue_is_over(const struct uvm_queue *queue)
{
	struct pollfd ready = { .fd = queue->pidfd, .events = POLLIN };

	return queue->pidfd >= 0 && poll(&ready, 1, 0) > 0;
}

/* Whether a thread has our copy's file at the number that it was taken from: 0, or an errno. */
static int has_still(const struct uvm_queue *queue, pid_t tid)
{
	int same = helper_same_file(tid, queue->fd, queue->space);

	if (same < 0)
		return -same;
	return same ? 0 : EBADF; /* another file */
}

bool uvm_queue_is_closed(const struct uvm_queue *queue)
{
	pid_t tid;

	if (queue->space < 0 || has_still(queue, queue->pid) != EBADF)
		return false;
	tid = process_living_thread(queue->pid); /* a first thread that has ended has no files */
	return tid && (tid == queue->pid || has_still(queue, tid) == EBADF);
}

uint64_t uvm_queue_dropped(const struct uvm_queue *queue)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		sum += __atomic_load_n(&queue->control->dropped[wanted[i]], __ATOMIC_RELAXED);
	return sum;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The number of the driver's device, whatever its path is; 0: there is none. */
static dev_t number_of(enum nvidia_device device)
{
	struct nvidia_numbers numbers[NVIDIA_NUMBERS_MAX];
	FILE *file = fopen("/proc/devices", "re");
	size_t n = nvidia_devices_read(file, numbers);

	if (file)
		fclose(file);
	for (size_t i = 0; i < n; i++) {
		if (numbers[i].device == device)
			return makedev(numbers[i].major, numbers[i].first);
	}
	return 0;
}

static bool is_device(int fd, enum nvidia_device device)
{
	dev_t number = number_of(device);
	struct stat st;

	return number && !fstat(fd, &st) && S_ISCHR(st.st_mode) && st.st_rdev == number;
}

static int open_process(struct uvm_queue *queue, struct err *err)
{
	queue->pidfd = (int)syscall(SYS_pidfd_open, queue->pid, 0);
	if (queue->pidfd < 0)
		return err_set(err, errno == ESRCH ? EPROTOTYPE : errno, "opening the process: %s",
		               strerror(errno));
	return 0;
}

/* The process's own descriptor, now ours as well. */
static int take_space(struct uvm_queue *queue, int fd, struct err *err)
{
	queue->fd = fd;
	queue->space = helper_copy_device(queue->pid, fd, number_of(NVIDIA_UVM));
	if (queue->space == -EPROTOTYPE)
		return err_set(err, EPROTOTYPE, "it is no descriptor of nvidia-uvm");
	if (queue->space < 0)
		return err_set(err,
		               queue->space == -EBADF || queue->space == -ESRCH ? EPROTOTYPE
		                                                                : queue->space,
		               "its descriptor of nvidia-uvm cannot be had: %s",
		               strerror(-queue->space));
	return 0;
}

int uvm_queue_hold(struct uvm_queue *queue, pid_t pid, int fd, int copy)
{
	queue->pid = pid;
	queue->fd = fd;
	queue->space = copy;
	return open_process(queue, NULL);
}

/* A descriptor that was duplicated or inherited is of the same address space. */
static bool is_one_of(const struct uvm_queue *queue, struct uvm_queue *const *others)
{
	for (; others && *others; others++) {
		if (!syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, queue->space,
		             (*others)->space))
			return true;
	}
	return false;
}

static int open_tools(struct uvm_queue *queue, struct err *err)
{
	queue->tools = open("/dev/nvidia-uvm-tools", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
	if (queue->tools < 0)
		return err_set(err, errno, "opening /dev/nvidia-uvm-tools: %s%s", strerror(errno),
		               errno == ENOENT ? " ('nvidia-modprobe -u -c 0' makes it)" : "");
	if (!is_device(queue->tools, NVIDIA_UVM_TOOLS))
		return err_set(err, ENODEV,
		               "/dev/nvidia-uvm-tools is not the device of the driver");
	return 0;
}

/* A child would write to a copy, and the driver holds on to the pages that it was given. */
static int make_memory(struct uvm_queue *queue, size_t bytes, struct err *err)
{
	size_t all = UVM_CONTROL_BYTES + bytes;
	void *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return err_set(err, errno, "memory for it: %s", strerror(errno));
	madvise(memory, all, MADV_DONTFORK);
	queue->bytes = all;
	queue->control = memory;
	queue->entries = (const uint8_t *)memory + UVM_CONTROL_BYTES;
	queue->mask = (uint32_t)(bytes / UVM_ENTRY) - 1;
	return 0;
}

static int begin(struct uvm_queue *queue, struct err *err)
{
	struct tools_init init = {
		.queue = (uint64_t)(uintptr_t)queue->entries,
		.queue_entries = queue->mask + 1,
		.control = (uint64_t)(uintptr_t)queue->control,
		.all_processors = 1,
		.uvm_fd = (uint32_t)queue->space,
		.requested = EVENTS_VERSION,
	};
	struct tools_enable enable = { 0 };

	if (ioctl(queue->tools, TOOLS_INIT_EVENT_TRACKER, &init))
		return err_set(err, errno, "the driver refuses a queue: %s", strerror(errno));
	if (init.status != NV_OK)
		return err_set(err, init.status == NV_ERR_ILLEGAL_ACTION ? EPROTOTYPE : EIO,
		               "the driver refuses a queue: status 0x%x", init.status);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		enable.types |= 1ull << wanted[i];
	if (ioctl(queue->tools, TOOLS_EVENT_QUEUE_ENABLE_EVENTS, &enable))
		return err_set(err, errno, "the driver tells no events: %s", strerror(errno));
	if (enable.status != NV_OK)
		return err_set(err, EIO, "the driver tells no events: status 0x%x", enable.status);
	return 0;
}

int uvm_queue_open(pid_t pid, int fd, size_t bytes, struct uvm_queue *const *others,
                   struct uvm_queue **queue, struct err *err)
{
	struct uvm_queue *fresh = xcalloc(1, sizeof(*fresh));
	int r;

	fresh->pid = pid;
	fresh->pidfd = fresh->tools = fresh->space = -1;
	r = open_process(fresh, err);
	if (!r)
		r = take_space(fresh, fd, err);
	if (!r && is_one_of(fresh, others))
		r = err_set(err, EEXIST, "it is read already");
	if (!r)
		r = open_tools(fresh, err);
	if (!r)
		r = make_memory(fresh, bytes, err);
	if (!r)
		r = begin(fresh, err);
	if (r) {
		uvm_queue_free(fresh);
		return r;
	}
	*queue = fresh;
	return 0;
}
