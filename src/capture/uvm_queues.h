/* SPDX-License-Identifier: MIT */
/*
 * The driver's own queues of managed memory (probe/uvm_queue.h) of all targets, for kernels that
 * let no program onto functions of modules. What they tell is what those programs tell: sums by
 * struct driver_key, and a sample of single events.
 *
 * A queue is memory that the kernel holds on to: 4 MiB if nobody asks for another size, all of them
 * 128 MiB. The processes of a user but root have half of the queues at most.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire_driver.h"

struct uvm_queues;

#define UVM_QUEUES         32
#define UVM_QUEUES_BYTES   ((size_t)128 << 20)
#define UVM_QUEUES_PROCESS 2 /* address spaces: CUDA has one */

/*
 * `ring_bytes` are those of all rings, 0 where nobody has said: a queue has an eighth of them.
 * `notice` is told once of each reason for which a process has no queue.
 */
struct uvm_queues *uvm_queues_new(size_t ring_bytes, void (*notice)(void *data, const char *text),
                                  void *data);
void uvm_queues_free(struct uvm_queues *queues);

/* A target has made an address space of this descriptor, or had made some before. */
void uvm_queues_add(struct uvm_queues *queues, pid_t pid, int fd);
void uvm_queues_look(struct uvm_queues *queues, pid_t pid);

/*
 * Reads all of them. A single event has its times in begin_ns and posted_ns, and in its head its
 * place in the order: the same, or now where it came late. `last`: what GPUs have not told of yet
 * is asked for.
 */
void uvm_queues_read(struct uvm_queues *queues, uint64_t now_ns, bool last,
                     void (*each)(void *data, const struct wire_driver_event *event), void *data);

/* Sums since the last time. */
void uvm_queues_sums(struct uvm_queues *queues,
                     void (*each)(void *data, const struct driver_key *key,
                                  const struct driver_sum *sum),
                     void *data);

/* Events that a full queue had no room for, and those that no sum had. */
uint64_t uvm_queues_dropped(const struct uvm_queues *queues);
uint64_t uvm_queues_rest(const struct uvm_queues *queues);

/* For tests: as uvm_queues_add, of a queue that is there. It is freed with the others. */
struct uvm_queue;
void uvm_queues_take(struct uvm_queues *queues, struct uvm_queue *queue, pid_t pid);
