/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Maps of the programs on the driver's functions, and the two ways in which something is told. */
#pragma once

#include "bpf/map.h"
#include "bpf/wire_driver.h"

#define SINGLES     64 /* of a CPU, in 2^SINGLES_NS ns */
#define SINGLES_NS  27
#define RING_BYTES  (1 << 20)
#define MAX_TARGETS 16384
#define MAX_THREADS 8192

const volatile struct driver_settings settings;
struct driver_state state;

/* These two are those of cuscope.bpf.c: user space puts them here. */
MAP(HASH, MAX_TARGETS, __u32, __u32) targets SEC(".maps");

MAP(CGROUP_ARRAY, 1, __u32, __u32) cgroups SEC(".maps");

/* One is written to while the other is read. */
MAP(HASH, DRIVER_ROWS, struct driver_key, struct driver_sum)
sums_even SEC(".maps"), sums_odd SEC(".maps");

MAP(HASH, DRIVER_ROWS_FEW, struct driver_key, struct driver_sum)
few_even SEC(".maps"), few_odd SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} ring SEC(".maps");

struct scratch {
	__u64 window, told; /* single events of this CPU */
	__u64 posting;      /* not 0: nv_post_event runs here, since then */
	struct driver_sum blank;
};

MAP(PERCPU_ARRAY, 1, __u32, struct scratch) scratch SEC(".maps");

/* Whose address space it is. */
struct owner {
	__u32 tgid, target;
};

/*
 * By the address of its va_space, and by that of the perf_events in it. Full, it refuses, and that
 * is counted: what would be pushed out is somebody's. How many of them a process has is in `spaces`
 * until it ends, so that nobody takes all.
 */
MAP(HASH, DRIVER_OWNERS, __u64, struct owner) owners SEC(".maps");

MAP(LRU_HASH, DRIVER_SPACES, __u32 /* tgid */, __s64) spaces SEC(".maps");

/* What a thread is in: a fault, or a wait. They are gone with their thread: see thread_gone. */
struct pending {
	__u64 begin_ns, address, posted_ns, interrupt_ns;
	__u64 space; /* of a fault of the host: the va_space that is mapped there */
	__u32 write, unused;
};

MAP(HASH, MAX_THREADS, __u32 /* tid */, struct pending) faults SEC(".maps");

MAP(HASH, MAX_THREADS, __u32 /* tid */, struct pending) waits SEC(".maps");

static __always_inline struct scratch *scratch_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratch, &zero);
}

static __always_inline void count(__u64 *number)
{
	__sync_fetch_and_add(number, 1);
}

/* ---- sums ---------------------------------------------------------------------------------- */

static __always_inline struct driver_sum *row_in(void *map, const struct driver_key *key,
                                                 const struct driver_sum *blank)
{
	struct driver_sum *sum = bpf_map_lookup_elem(map, key);

	if (sum)
		return sum;
	bpf_map_update_elem(map, key, blank, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

/* The row of this key; of its process without the place where there is no room for that. */
static __always_inline struct driver_sum *row_of(struct driver_key *key, struct scratch *s)
{
	__u32 side = *(volatile __u32 *)&state.side;
	struct driver_sum *sum;

	sum = side & 1 ? row_in(&sums_odd, key, &s->blank) : row_in(&sums_even, key, &s->blank);
	if (sum)
		return sum;
	key->block = 0;
	return side & 1 ? row_in(&few_odd, key, &s->blank) : row_in(&few_even, key, &s->blank);
}

/* The class of a histogram: of 4 KiB or 4 ms and less, and so on. */
static __always_inline __u32 size_class(__u64 size)
{
	__u32 class = 0;

	size = size ? (size - 1) >> 12 : 0;
	if (size >> 8) {
		class += 8;
		size >>= 8;
	}
	if (size >> 4) {
		class += 4;
		size >>= 4;
	}
	if (size >> 2) {
		class += 2;
		size >>= 2;
	}
	if (size >> 1) {
		class += 1;
		size >>= 1;
	}
	class += size != 0;
	return class < DRIVER_SIZES ? class : DRIVER_SIZES - 1;
}

struct amount {
	__u64 address, bytes, ns;
};

static __always_inline void sum_add(struct driver_key *key, const struct amount *amount,
                                    struct scratch *s)
{
	__u32 class = size_class(amount->bytes ? amount->bytes : amount->ns / 1000);
	__u64 now = bpf_ktime_get_ns();
	struct driver_sum *sum;

	key->block = amount->address >> DRIVER_BLOCK;
	sum = row_of(key, s);
	if (!sum) {
		count(&state.rest[key->kind < DRIVER_KINDS ? key->kind : 0]);
		return;
	}
	if (!sum->first || amount->address < sum->first)
		sum->first = amount->address;
	if (amount->address > sum->last)
		sum->last = amount->address;
	if (now > sum->last_ns)
		sum->last_ns = now;
	__sync_fetch_and_add(&sum->count, 1);
	if (amount->bytes) /* clang makes an `or` of an addition of 0, which 5.10 does not have */
		__sync_fetch_and_add(&sum->bytes, amount->bytes);
	if (amount->ns)
		__sync_fetch_and_add(&sum->ns, amount->ns);
	if (class < DRIVER_SIZES)
		__sync_fetch_and_add(&sum->sizes[class], 1);
}

/* ---- single events ------------------------------------------------------------------------- */

/* Whether this one is told by itself: so many of a CPU at a time, the others are in sums alone. */
static __always_inline int is_told(struct scratch *s, __u64 now)
{
	if (s->window != now >> SINGLES_NS) {
		s->window = now >> SINGLES_NS;
		s->told = 0;
	}
	if (s->told >= SINGLES) {
		count(&state.left);
		return 0;
	}
	s->told++;
	count(&state.told);
	return 1;
}

/* One that the caller submits; NULL: it is counted as lost. */
static __always_inline struct wire_driver_event *event_begin(__u8 kind, __u64 id, __u64 begin_ns,
                                                             __u64 now)
{
	struct wire_driver_event *event = bpf_ringbuf_reserve(&ring, sizeof(*event), 0);

	if (!event) {
		count(&state.lost[DRIVER_LOST_RING]);
		return 0;
	}
	__builtin_memset(event, 0, __builtin_offsetof(struct wire_driver_event, text));
	event->text[0] = 0;
	event->head.type = WIRE_DRIVER_EVENT;
	event->head.hook = kind;
	event->head.tgid = id >> 32;
	event->head.tid = id;
	event->head.time_ns = now;
	event->begin_ns = begin_ns;
	event->cause = event->src = event->dst = DRIVER_NOT_KNOWN;
	return event;
}
