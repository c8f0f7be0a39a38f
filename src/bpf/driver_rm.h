/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* nvidia.ko: interrupts, waits for the driver's events, and Xids. */
#pragma once

#include "bpf/driver_uvm.h"

static __always_inline void interrupted(void)
{
	struct driver_key key = { .kind = DRIVER_INTERRUPT,
		                  .cause = DRIVER_NOT_KNOWN,
		                  .src = DRIVER_NOT_KNOWN,
		                  .dst = DRIVER_NOT_KNOWN };
	struct scratch *s = scratch_get();
	struct amount amount = {};

	state.isr_ns = bpf_ktime_get_ns();
	if (s)
		sum_add(&key, &amount, s);
}

/* ---- waits --------------------------------------------------------------------------------- */

/* It takes microseconds. Its return may be missed, or come on another CPU: it is over, too. */
#define POSTING_NS 1000000

/* Which threads the event wakes, the kernel says while this function runs. */
static __always_inline void post_began(void)
{
	struct scratch *s = scratch_get();

	if (s)
		s->posting = bpf_ktime_get_ns();
}

static __always_inline void post_ended(void)
{
	struct scratch *s = scratch_get();

	if (s)
		s->posting = 0;
}

static __always_inline void woken(struct task_struct *task)
{
	struct scratch *s = scratch_get();
	struct pending *wait;
	__u32 tid;

	if (!s || !s->posting)
		return;
	if (bpf_ktime_get_ns() - s->posting > POSTING_NS) {
		s->posting = 0;
		return;
	}
	tid = BPF_CORE_READ(task, pid);
	wait = bpf_map_lookup_elem(&waits, &tid);
	if (!wait || wait->posted_ns)
		return;
	wait->posted_ns = s->posting;
	wait->interrupt_ns = state.isr_ns <= s->posting ? state.isr_ns : 0;
}

static __always_inline void wait_over(__u64 id, const struct pending *wait)
{
	__u64 now = bpf_ktime_get_ns();
	struct driver_key key = { .tgid = id >> 32,
		                  .kind = DRIVER_WAIT,
		                  .cause = DRIVER_NOT_KNOWN,
		                  .src = DRIVER_NOT_KNOWN,
		                  .dst = DRIVER_NOT_KNOWN };
	struct amount amount = { .ns = now - wait->begin_ns };
	struct wire_driver_event *event;
	struct scratch *s = scratch_get();

	if (!s)
		return;
	sum_add(&key, &amount, s);
	if (!is_told(s, now))
		return;
	event = event_begin(DRIVER_WAIT, id, wait->begin_ns, now);
	if (!event)
		return;
	event->posted_ns = wait->posted_ns;
	event->interrupt_ns = wait->interrupt_ns >= wait->begin_ns ? wait->interrupt_ns : 0;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/*
 * poll asks the device before it sleeps and once more when it was woken. The first time there is
 * nothing, which begins a wait; an answer after an event ends it.
 */
static __always_inline void polled(__u64 mask)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct pending wait = { .begin_ns = bpf_ktime_get_ns() }, *known;
	__u32 tid = id;

	if (!current_is_target(id >> 32))
		return;
	known = bpf_map_lookup_elem(&waits, &tid);
	if (known && known->posted_ns) {
		wait_over(id, known);
		bpf_map_delete_elem(&waits, &tid);
	} else if (mask & 0xffffffff) {
		bpf_map_delete_elem(&waits, &tid);
	} else if (bpf_map_update_elem(&waits, &tid, &wait, BPF_ANY)) {
		count(&state.lost[DRIVER_LOST_THREADS]);
	}
}

/* ---- Xids ---------------------------------------------------------------------------------- */

struct pci_bus {
	unsigned char number;
} __attribute__((preserve_access_index));

struct pci_dev {
	struct pci_bus *bus;
	unsigned int devfn;
} __attribute__((preserve_access_index));

static __always_inline void xid_reported(struct pci_dev *device, __u32 xid)
{
	__u64 now = bpf_ktime_get_ns();
	struct wire_driver_event *event = event_begin(DRIVER_XID, 0, now, now);

	if (!event)
		return;
	event->xid = xid;
	if (device)
		event->bus = (__u32)BPF_CORE_READ(device, bus, number) << 8 |
		             (BPF_CORE_READ(device, devfn) & 0xff);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* The layout of the trace event: a text's place is its offset, with its length above. */
struct xid_event {
	__u64 common;
	__u32 dev;
	__u32 error_code;
	__u32 msg;
};

static __always_inline void xid_traced(struct xid_event *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct wire_driver_event *event = event_begin(DRIVER_XID, 0, now, now);

	if (!event)
		return;
	event->xid = ctx->error_code;
	if (bpf_probe_read_kernel_str(event->text, DRIVER_TEXT, (void *)ctx + (ctx->msg & 0xffff)) <
	    0)
		count(&state.lost[DRIVER_LOST_TEXTS]);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}
