// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The least that a tracer can do with a call: one record, reserved and submitted. What cuscope
 * costs above this is its own doing.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#ifndef BPF_RB_NO_WAKEUP
#define BPF_RB_NO_WAKEUP 1
#endif

struct record {
	__u64 begin_ns;
	__u64 end_ns;
	__u64 cookie;
	__u64 pid_tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} records SEC(".maps");

__u64 lost;

extern __u64 *bpf_session_cookie(void) __ksym __weak;
extern _Bool bpf_session_is_return(void) __ksym __weak;

static int submit(void *ctx, __u64 begin_ns, __u64 end_ns)
{
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	r->begin_ns = begin_ns;
	r->end_ns = end_ns;
	r->cookie = bpf_get_attach_cookie(ctx);
	r->pid_tgid = bpf_get_current_pid_tgid();
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("uprobe")
int floor_entry(void *ctx)
{
	return submit(ctx, bpf_ktime_get_ns(), 0);
}

SEC("uprobe")
int floor_session(void *ctx)
{
	__u64 *begin_ns = bpf_session_cookie();

	if (!bpf_session_is_return()) {
		*begin_ns = bpf_ktime_get_ns();
		return 0;
	}
	return submit(ctx, *begin_ns, bpf_ktime_get_ns());
}
