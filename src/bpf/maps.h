/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Maps and settings of the programs, and the way a record leaves. */
#pragma once

#include "bpf/map.h"
#include "bpf/wire.h"

#define MAX_THREADS 8192
#define MAX_TARGETS WIRE_TARGETS_MAX
#define MAX_INSIDE  4096

/* See enum lost_reason: the numbers are part of the wire. */
enum {
	LOST_RING_FULL,
	LOST_THREADS_FULL,
	LOST_NO_ENTRY,
	LOST_TOO_DEEP,
	LOST_UNREADABLE,
	LOST_RECORDS = 9,
	LOST_TARGETS_FULL,
	LOST_TEXTS,
};

const volatile struct wire_settings settings;
struct wire_state state;

/*
 * Preallocated on purpose: before 6.1 the kernel warns in its log about tracing programs that
 * allocate map elements at run time.
 */
MAP(HASH, MAX_THREADS, __u32 /* tid */, struct wire_thread) threads SEC(".maps");

MAP(ARRAY, 1, __u32, struct wire_thread) blank_thread SEC(".maps");

MAP(HASH, MAX_TARGETS, __u32 /* tgid */, __u32 /* enum target_flags */) targets SEC(".maps");

/*
 * Processes of whose calls an agent tells, with a bit for each module of which that holds (see
 * wire_state.inside), and INSIDE_ANY. When they map a file only that is left.
 */
MAP(HASH, MAX_INSIDE, __u32 /* tgid */, __u64) inside SEC(".maps");

MAP(CGROUP_ARRAY, 1, __u32, __u32) cgroups SEC(".maps");

/* Threads that were just sent a signal to stop by, until the tracer has seen them: enum held. */
MAP(HASH, 1024, __u32 /* tid */, __u8) held_threads SEC(".maps");

/* What one of two programs for an event has seen to and the other not: see seen_to_by_the_other. */
struct seen_key {
	__u64 task; /* struct task_struct */
	__u64 event;
};

MAP(HASH, 1024, struct seen_key, __u64) seen_by_one SEC(".maps");

/* Files whose executable mapping needs no report: no module, or hooked already. */
struct file_key {
	__u64 inode;
	__u64 dev;
};

MAP(LRU_HASH, 16384, struct file_key, struct wire_known) known_files SEC(".maps");

/* For what a held thread waits: the one who looks has to know which file may be a new one. */
MAP(LRU_HASH, 4096, __u32 /* tid */, struct wire_file) held_for SEC(".maps");

MAP(ARRAY, 1, __u32, struct wire_glob) name_glob SEC(".maps");

struct map_scratch {
	__u64 busy;
	struct mount *mount; /* a walk up a path, and how many bytes of names it has left behind */
	struct dentry *dentry;
	__u64 at;
	struct wire_map_path record;
};

MAP(PERCPU_ARRAY, 1, __u32, struct map_scratch) map_scratch SEC(".maps");

/* Kernel handles whose name was sent, with the generation it was sent in. */
struct kernel_key {
	__u64 handle;
	__u64 tgid;
};

MAP(LRU_HASH, 32768, struct kernel_key, __u64) named_kernels SEC(".maps");

/*
 * Since 6.0 a probe's program may be preempted by another thread's, which may read all its names
 * and end before the first has the CPU again: so there are several.
 */
#define NAME_SLOTS 4

struct scratch {
	__u64 cookie; /* of slot 0: left by a stub on kernels without bpf_get_attach_cookie */
	__u64 name_busy;
	struct wire_name name;
};

MAP(PERCPU_ARRAY, NAME_SLOTS, __u32, struct scratch) scratch SEC(".maps");

/*
 * For a buffer of this CPU. Counted before it is looked at: another thread's program can come in
 * between the two, and must not find it free as well. Of two that meet so, neither may get it.
 */
static __always_inline int buffer_claim(__u64 *busy)
{
	__sync_fetch_and_add(busy, 1);
	if (*(volatile __u64 *)busy == 1)
		return 1;
	__sync_fetch_and_add(busy, -1ull);
	return 0;
}

static __always_inline void buffer_release(__u64 *busy)
{
	__sync_fetch_and_add(busy, -1ull);
}

/* On kernels without cookies: slot 0 holds call_enter, which every stub ends in. */
MAP(PROG_ARRAY, 1, __u32, __u32) stub_exit SEC(".maps");

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* user space makes the real ones, all of one size */
};

/* One ring for a CPU, or for a few: a single ring's lock is what sixteen launching threads
 * meet at. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WIRE_RINGS_MAX);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

/*
 * A masked index whose bound the verifier still sees where it is used: clang drops a mask that it
 * has proved before, and the verifier forgets bounds of values that went through the stack.
 */
#define BOUNDED(index, mask)                                                                       \
	({                                                                                         \
		__u64 bounded_ = (index);                                                          \
		asm volatile("" : "+r"(bounded_));                                                 \
		bounded_ &(mask);                                                                  \
	})

/* wire_kernels_generation */
static __always_inline __u32 *kernels_generation(__u32 tgid)
{
	return &state.kernels_generation[BOUNDED(wire_kernels_slot(&state, tgid),
	                                         WIRE_KERNELS_SLOTS - 1)];
}

static __always_inline void count_lost(__u32 reason)
{
	__sync_fetch_and_add(&state.lost[reason], 1);
}

enum urgency {
	WAKE_NOBODY, /* the reader looks on a timer */
	WAKE_IF_FULL,
	WAKE_NOW,
};

/*
 * A record leaves without waking the reader, who looks on a timer; only a ring that fills up
 * wakes him, once. (A wake-up for each record costs 1,600 ns, three times the rest.) Returns 0 when
 * it has left, and counts it as lost for this reason when it could not.
 */
static __always_inline long emit_or_count(void *record, __u64 bytes, enum urgency urgency,
                                          __u32 reason)
{
	__u32 cpu = bpf_get_smp_processor_id() & settings.ring_mask, slot = cpu;
	void *ring = bpf_map_lookup_elem(&rings, &slot);
	__u64 flags = urgency == WAKE_NOW ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
	long failed;

	if (!ring)
		return -1;
	if (urgency == WAKE_IF_FULL) {
		__u8 *woken = &state.woken[BOUNDED(cpu, WIRE_RINGS_MAX - 1)];

		if (!*woken && bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > settings.wake_bytes) {
			*woken = 1;
			flags = BPF_RB_FORCE_WAKEUP;
		}
	}
	failed = bpf_ringbuf_output(ring, record, bytes, flags);
	if (failed)
		count_lost(reason);
	return failed;
}

/* What is no call: those are counted apart, so that calls seen and calls lost are all calls. */
static __always_inline long emit(void *record, __u64 bytes, enum urgency urgency)
{
	return emit_or_count(record, bytes, urgency, LOST_RECORDS);
}

static __always_inline void head_fill(struct wire_head *head, __u8 type, __u64 id, __u64 time_ns)
{
	head->type = type;
	head->flags = 0;
	head->depth = 0;
	head->words = 0;
	head->hook = 0;
	head->bytes = 0;
	head->tgid = id >> 32;
	head->tid = id;
	head->time_ns = time_ns;
}
