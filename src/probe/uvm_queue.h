/* SPDX-License-Identifier: MIT */
/*
 * The driver's own queue of what happens to the managed memory of a process: faults of the host and
 * of GPUs, migrations, thrashing. nvidia-uvm.ko writes it into memory of ours, for whoever has
 * /dev/nvidia-uvm-tools open and a descriptor of the process's address space: pidfd_getfd() gives
 * that to root. It needs no probe, so it works where the kernel allows none on modules, and nothing
 * is in the process. Profilers use it for themselves: CUPTI's unified memory counters do.
 *
 * As long as it is open, the driver keeps the address space, and with it memory on GPUs, also when
 * its process has ended, has closed it, or has become another program. So who reads it looks
 * whether that is over, and closes it at once.
 *
 *   uvm_queue_open -> uvm_queue_read ... until uvm_queue_is_over or uvm_queue_is_closed ->
 * uvm_queue_read -> uvm_queue_free
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct uvm_queue;

/* Kinds, causes and processors are those of bpf/wire_driver.h. Times are CLOCK_MONOTONIC. */
struct uvm_event {
	uint8_t kind, cause, src, dst;
	uint32_t tid;              /* of a fault of the host; else 0 */
	uint64_t begin_ns, end_ns; /* the same, where the driver tells one moment. A migration */
				   /* begins when it was asked for, and takes what the GPU says */
	uint64_t address, bytes;
};

#define UVM_QUEUE_LEAST ((size_t)256 << 10)
#define UVM_QUEUE_MOST  ((size_t)8 << 20)

/*
 * `fd` of the process `pid` is an address space of nvidia-uvm. -EPROTOTYPE: it is no such
 * descriptor, or not yet; -EEXIST: it is that of `others`, NULL at the end. Any other failure is
 * one that the user should know of. `bytes` of memory are the queue's, a power of two.
 */
int uvm_queue_open(pid_t pid, int fd, size_t bytes, struct uvm_queue *const *others,
                   struct uvm_queue **queue, struct err *err);
void uvm_queue_free(struct uvm_queue *queue);

/* Its events since the last time, each once, in the order in which the driver told them. */
void uvm_queue_read(struct uvm_queue *queue,
                    void (*each)(void *data, const struct uvm_event *event), void *data);

/* Migrations that the GPU has finished are told when the driver looks at it: it does so now. */
void uvm_queue_flush(struct uvm_queue *queue);

bool uvm_queue_is_over(const struct uvm_queue *queue); /* its process has ended */

/* Its process has the address space no more at the number that it was opened with: it closed it, or
 * did exec. False where the kernel cannot be asked (CONFIG_KCMP). */
bool uvm_queue_is_closed(const struct uvm_queue *queue);

/* Events for which there was no room since it was opened. */
uint64_t uvm_queue_dropped(const struct uvm_queue *queue);

/* ---- for tests ------------------------------------------------------------------------------- */

#define UVM_ENTRY 64 /* bytes of an event */

/* Of the driver's own clock, which `offset_ns` makes ours. False: it is of no kind that we tell. */
bool uvm_event_decode(const uint8_t entry[UVM_ENTRY], int64_t offset_ns, struct uvm_event *event);

struct uvm_control {
	uint32_t get_ahead, get_behind, put_ahead, put_behind;
	uint64_t dropped[64]; /* by type of event */
};
#define UVM_CONTROL_BYTES 4096

/* For tests: a queue over memory that the test writes as the driver does: control, and behind it
 * `entries`, a power of two. */
struct uvm_queue *uvm_queue_over(void *memory, uint32_t entries);

/* For tests: its address space is a process's descriptor of anything, of which the queue owns a
 * copy then. Returns 0 or a negative errno. */
int uvm_queue_hold(struct uvm_queue *queue, pid_t pid, int fd, int copy);
