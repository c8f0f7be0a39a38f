/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Managed memory: what nvidia-uvm.ko tells itself of faults and migrations, and whose they are. */
#pragma once

#include "bpf/driver_maps.h"

#define UVM_FD_BITS     7 /* of a file's private_data: what the rest is */
#define UVM_FD_VA_SPACE 2
#define EVENTS_WITHIN   (1 << 20) /* bytes that a va_space is smaller than */
#define CAUSE_MIGRATE   6

/* Whether the current process is a target; not to be asked on a thread of the kernel. */
static __always_inline int current_is_target(__u32 tgid)
{
	if (bpf_map_lookup_elem(&targets, &tgid))
		return 1;
	if (tgid == settings.self_tgid)
		return 0;
	if (settings.all)
		return 1;
	return settings.cgroup && bpf_current_task_under_cgroup(&cgroups, 0) == 1;
}

/* ---- whose address space it is ------------------------------------------------------------- */

/* How many addresses a process owns; NULL is a number that is not known, and has room. */
static __always_inline __s64 *spaces_of(__u32 tgid)
{
	__s64 *n = bpf_map_lookup_elem(&spaces, &tgid), none = 0;

	if (n)
		return n;
	bpf_map_update_elem(&spaces, &tgid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&spaces, &tgid);
}

static __always_inline void owner_set(__u64 address, __u32 tgid)
{
	struct owner owner = { tgid, current_is_target(tgid) }, *known;
	__s64 *n;

	known = bpf_map_lookup_elem(&owners, &address);
	if (known && known->tgid == tgid && known->target == owner.target)
		return;
	if (known) {
		bpf_map_update_elem(&owners, &address, &owner, BPF_EXIST);
		return;
	}
	n = spaces_of(tgid);
	if ((n && *n >= DRIVER_SHARE) ||
	    bpf_map_update_elem(&owners, &address, &owner, BPF_NOEXIST)) {
		count(&state.lost[DRIVER_LOST_SPACES]);
		return;
	}
	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline void owner_gone(__u64 address)
{
	struct owner *owner = bpf_map_lookup_elem(&owners, &address);
	__u32 tgid = owner ? owner->tgid : 0;
	__s64 *n = owner ? bpf_map_lookup_elem(&spaces, &tgid) : 0;

	if (owner && !bpf_map_delete_elem(&owners, &address) && n)
		__sync_fetch_and_add(n, -1ll);
}

/*
 * Its perf_events are at `events`, as is seen when it causes an event itself. Where types do not
 * say how far those are behind the va_space, a fault of the host does, for the whole machine. So
 * nothing is believed that a process can choose, such as which of its spaces it used last: of the
 * fault that the thread is in, the kernel knows the mapping, and with it the space.
 */
static __always_inline void events_seen(__u64 events, int in_fault)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct pending *fault;
	__u32 tid = id;

	owner_set(events, id >> 32);
	if (!in_fault || settings.layout.events || state.events)
		return;
	fault = bpf_map_lookup_elem(&faults, &tid);
	if (fault && fault->space && events > fault->space && events - fault->space < EVENTS_WITHIN)
		state.events = events - fault->space;
}

static __always_inline void space_gone(__u64 space)
{
	__u64 offset = settings.layout.events ? settings.layout.events : state.events;

	owner_gone(space);
	if (offset)
		owner_gone(space + offset);
}

static __always_inline __u64 space_of(struct file *file)
{
	__u64 data = (__u64)BPF_CORE_READ(file, private_data);

	return (data & UVM_FD_BITS) == UVM_FD_VA_SPACE ? data & ~(__u64)UVM_FD_BITS : 0;
}

static __always_inline void file_used(__u64 file)
{
	__u64 space = space_of((void *)file);

	if (space) /* the current process has opened it */
		owner_set(space, bpf_get_current_pid_tgid() >> 32);
}

static __always_inline void file_released(__u64 file)
{
	__u64 space = space_of((void *)file);

	if (space)
		space_gone(space);
}

/* 0: nobody's that counts. 1: *tgid is a target, or 0 where nobody knows. */
static __always_inline int owner_of(__u64 address, __u32 *tgid)
{
	struct owner *owner = bpf_map_lookup_elem(&owners, &address);

	*tgid = owner ? owner->tgid : 0;
	return !owner || owner->target || bpf_map_lookup_elem(&targets, tgid);
}

static __always_inline int owner_of_events(__u64 events, __u32 *tgid)
{
	__u64 offset = settings.layout.events ? settings.layout.events : state.events;

	if (bpf_map_lookup_elem(&owners, &events) || !offset)
		return owner_of(events, tgid);
	return owner_of(events - offset, tgid);
}

/* ---- one event ----------------------------------------------------------------------------- */

static __always_inline __u32 word_at(__u64 data, __u32 offset)
{
	__u32 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)data + offset);
	return value;
}

static __always_inline __u64 long_at(__u64 data, __u32 offset)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)data + offset);
	return value;
}

static __always_inline __u8 small(__u32 number)
{
	return number < DRIVER_NOT_KNOWN ? number : DRIVER_NOT_KNOWN;
}

static __always_inline void tell(const struct driver_key *key, const struct amount *amount,
                                 struct scratch *s)
{
	struct wire_driver_event *event;
	__u64 now = bpf_ktime_get_ns();

	if (!is_told(s, now))
		return;
	event = event_begin(key->kind, (__u64)key->tgid << 32, now - amount->ns, now);
	if (!event)
		return;
	event->cause = key->cause;
	event->src = key->src;
	event->dst = key->dst;
	event->address = amount->address;
	event->bytes = amount->bytes;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline void add_and_tell(struct driver_key *key, const struct amount *amount)
{
	struct scratch *s = scratch_get();

	if (!s)
		return;
	sum_add(key, amount, s);
	tell(key, amount, s);
}

static __always_inline void on_fault(__u64 events, __u64 data)
{
	const volatile struct driver_layout *at = &settings.layout;
	__u32 processor = word_at(data, at->fault_processor);
	struct driver_key key = { .kind = DRIVER_GPU_FAULT, .dst = small(processor) };
	struct amount amount = {};
	__u64 entry;

	key.cause = key.src = DRIVER_NOT_KNOWN;
	if (!processor) {
		events_seen(events, 1);
		if (state.faults) /* another program tells of it, with its time */
			return;
		key.kind = DRIVER_CPU_FAULT;
		key.cause = word_at(data, at->fault_write) & 0xff;
		amount.address = long_at(data, at->fault_address);
	} else {
		entry = long_at(data, at->fault_entry);
		amount.address = entry ? long_at(entry, 0) : 0;
	}
	if (!owner_of_events(events, &key.tgid))
		return;
	add_and_tell(&key, &amount);
}

static __always_inline void on_migration(__u64 events, __u64 data)
{
	const volatile struct driver_layout *at = &settings.layout;
	struct driver_key key = { .kind = DRIVER_MIGRATION,
		                  .cause = small(word_at(data, at->migration_cause)),
		                  .src = small(word_at(data, at->migration_src)),
		                  .dst = small(word_at(data, at->migration_dst)) };
	struct amount amount = { .address = long_at(data, at->migration_address),
		                 .bytes = long_at(data, at->migration_bytes) };

	if (key.cause == CAUSE_MIGRATE && bpf_get_current_pid_tgid() >> 32)
		events_seen(events, 0);
	if (owner_of_events(events, &key.tgid))
		add_and_tell(&key, &amount);
}

static __always_inline void uvm_notified(__u64 events, __u32 event, __u64 data)
{
	struct driver_key key = { .kind = DRIVER_REVOCATION };
	struct amount amount = {};

	if (event == settings.layout.fault) {
		on_fault(events, data);
	} else if (event == settings.layout.migration) {
		on_migration(events, data);
	} else if (event == settings.layout.revocation && owner_of_events(events, &key.tgid)) {
		key.cause = key.src = key.dst = DRIVER_NOT_KNOWN;
		add_and_tell(&key, &amount);
	}
}

/* Of the functions that tell tools: the va_space is an argument. */
static __always_inline void uvm_told(__u8 kind, __u64 space, __u64 address, __u64 bytes,
                                     __u32 processor)
{
	struct driver_key key = { .kind = kind,
		                  .cause = DRIVER_NOT_KNOWN,
		                  .src = DRIVER_NOT_KNOWN,
		                  .dst = small(processor) };
	struct amount amount = { .address = address, .bytes = bytes };

	if (owner_of(space, &key.tgid))
		add_and_tell(&key, &amount);
}

/* ---- faults of the host, with the time that they take --------------------------------------- */

struct vm_area_struct {
	struct file *vm_file;
} __attribute__((preserve_access_index));

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long address;
	unsigned int flags; /* before 5.14 */
} __attribute__((preserve_access_index));

enum fault_flag { FAULT_FLAG_OF_NONE };

struct vm_fault___since_5_14 {
	enum fault_flag flags;
} __attribute__((preserve_access_index));

static __always_inline __u32 fault_flags(struct vm_fault *fault)
{
	struct vm_fault___since_5_14 *newer = (void *)fault;

	return bpf_core_field_exists(newer->flags) ? (__u32)BPF_CORE_READ(newer, flags)
	                                           : BPF_CORE_READ(fault, flags);
}

#define FAULT_FLAG_WRITE 1

static __always_inline void cpu_fault_add(__u32 tgid, const struct pending *pending, __u64 ns,
                                          struct scratch *s)
{
	struct driver_key key = { .tgid = tgid,
		                  .kind = DRIVER_CPU_FAULT,
		                  .cause = pending->write,
		                  .src = DRIVER_NOT_KNOWN };
	struct amount amount = { pending->address, 0, ns };

	sum_add(&key, &amount, s);
}

/* Where the kernel has no room for a return (kretprobes have so many), the next fault tells. */
static __always_inline void cpu_fault_began(struct vm_fault *fault)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct pending pending = { .begin_ns = bpf_ktime_get_ns() }, *earlier;
	struct scratch *s = scratch_get();
	__u32 tid = id;

	if (!s || !current_is_target(id >> 32))
		return;
	earlier = bpf_map_lookup_elem(&faults, &tid);
	if (earlier)
		cpu_fault_add(id >> 32, earlier, 0, s);
	pending.address = BPF_CORE_READ(fault, address);
	pending.space = space_of(BPF_CORE_READ(fault, vma, vm_file));
	pending.write = fault_flags(fault) & FAULT_FLAG_WRITE;
	if (bpf_map_update_elem(&faults, &tid, &pending, BPF_ANY))
		count(&state.lost[DRIVER_LOST_THREADS]);
}

static __always_inline void cpu_fault_ended(void)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	__u32 tid = id;
	struct pending *pending = bpf_map_lookup_elem(&faults, &tid);
	struct wire_driver_event *event = 0;
	struct scratch *s = scratch_get();

	if (!pending || !s)
		return;
	cpu_fault_add(id >> 32, pending, now - pending->begin_ns, s);
	if (is_told(s, now))
		event = event_begin(DRIVER_CPU_FAULT, id, pending->begin_ns, now);
	if (event) {
		event->cause = pending->write;
		event->dst = 0;
		event->address = pending->address;
		bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	}
	bpf_map_delete_elem(&faults, &tid);
}

/*
 * A thread is over, or has another number since it called exec. A fault of which the kernel had no
 * room for the return would be told by the next one.
 */
static __always_inline void thread_gone(__u32 tid)
{
	struct pending *fault = bpf_map_lookup_elem(&faults, &tid);
	struct scratch *s = scratch_get();

	if (fault && fault->address && s)
		cpu_fault_add(bpf_get_current_pid_tgid() >> 32, fault, 0, s);
	if (fault)
		bpf_map_delete_elem(&faults, &tid);
	bpf_map_delete_elem(&waits, &tid);
}

/* ---- rounds that answer faults of a GPU: nobody's ------------------------------------------- */

static __always_inline void batch_began(void)
{
	struct pending pending = { .begin_ns = bpf_ktime_get_ns() };
	__u32 tid = bpf_get_current_pid_tgid();

	if (bpf_map_update_elem(&faults, &tid, &pending, BPF_ANY))
		count(&state.lost[DRIVER_LOST_THREADS]);
}

static __always_inline void batch_ended(void)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct pending *pending = bpf_map_lookup_elem(&faults, &tid);
	struct driver_key key = { .kind = DRIVER_FAULT_BATCH,
		                  .cause = DRIVER_NOT_KNOWN,
		                  .src = DRIVER_NOT_KNOWN,
		                  .dst = DRIVER_NOT_KNOWN };
	struct scratch *s = scratch_get();
	struct amount amount = {};

	if (!pending || !s)
		return;
	amount.ns = bpf_ktime_get_ns() - pending->begin_ns;
	sum_add(&key, &amount, s);
	bpf_map_delete_elem(&faults, &tid);
}
