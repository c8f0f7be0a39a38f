/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * What the programs on functions of NVIDIA's kernel modules (driver.bpf.c) share with user space.
 * Of what is frequent only sums are kept; single events are a sample of it. An event that a thread
 * of the kernel causes belongs to the process whose address space it is about.
 */
#pragma once

#include "bpf/wire.h"

/* Of struct wire_head: struct wire_driver_event. Far from the numbers of the other programs. */
#define WIRE_DRIVER_EVENT 64

/* Numbers are in the wire only. */
enum driver_kind {
	DRIVER_CPU_FAULT,   /* of the host, on managed memory */
	DRIVER_GPU_FAULT,   /* of a GPU, which the driver answers */
	DRIVER_MIGRATION,   /* memory moved, or was copied, between two processors */
	DRIVER_REVOCATION,  /* a processor lost access */
	DRIVER_THRASHING,   /* memory goes back and forth between processors */
	DRIVER_THROTTLING,  /* a processor is held back for that */
	DRIVER_FATAL_FAULT, /* no access can answer it: the GPU's work fails */
	DRIVER_FAULT_BATCH, /* one round of the driver's that answers faults of a GPU */
	DRIVER_INTERRUPT,
	DRIVER_WAIT, /* a thread that polls a device, until the driver's event wakes it */
	DRIVER_XID,
	DRIVER_KINDS
};

#define DRIVER_NOT_KNOWN 255 /* of a cause or a processor */
#define DRIVER_SIZES                                                                               \
	12 /* classes of a histogram: 4 KiB and less, each the double, 8 MiB and more */
#define DRIVER_BLOCK    21 /* bits of an address within the block that sums tell apart: 2 MiB */
#define DRIVER_ROWS     16384
#define DRIVER_ROWS_FEW 2048 /* without the block, where there is no room for it */
#define DRIVER_SPACES   4096
#define DRIVER_OWNERS   8192 /* two of each space */
#define DRIVER_SHARE    1024 /* of them a process has at most */
#define DRIVER_TEXT     256

struct driver_key {
	__u32 tgid;    /* 0: not known */
	__u8 kind;     /* enum driver_kind */
	__u8 cause;    /* of a migration; of a CPU fault whether it is a write */
	__u8 src, dst; /* processors: 0 the host, else a GPU's index + 1; faults have dst only */
	__u64 block;   /* address >> DRIVER_BLOCK; 0: not told apart */
};

struct driver_sum {
	__u64 count, bytes, ns;
	__u64 first, last;         /* addresses */
	__u64 last_ns;             /* when the last of them was */
	__u64 sizes[DRIVER_SIZES]; /* of bytes, or of ns / 1000 where there are no bytes */
};

struct wire_driver_event {
	struct wire_head head; /* hook: enum driver_kind */
	__u64 begin_ns;
	__u8 cause, src, dst, reserved[5];
	__u64 address, bytes;
	__u64 interrupt_ns, posted_ns; /* DRIVER_WAIT: when; 0: not known. Of the driver's own */
				       /* queue (capture/uvm_queues.h): posted_ns is its end */
	__u32 xid, bus;                /* DRIVER_XID; bus: domain << 16 | bus << 8 | devfn */
	char text[DRIVER_TEXT];        /* DRIVER_XID: what the driver says of it */
};

/* By the driver's version, or from its types: see probe/driver_layout.h. Offsets in bytes. */
struct driver_layout {
	__u32 fault, migration, revocation; /* numbers of events */
	__u32 fault_processor, fault_entry, fault_address, fault_write;
	__u32 migration_dst, migration_src, migration_address, migration_bytes, migration_cause;
	__u32 events; /* of perf_events in a va_space; 0: not known, it is found out */
};

struct driver_settings {
	struct driver_layout layout;
	__u8 all, cgroup;
	__u32 self_tgid;
};

struct driver_state {
	__u32 side;       /* which of both maps of sums is written to */
	__u32 faults;     /* those of the host have a program of their own, which is attached */
	__u64 events;     /* the offset that was found out */
	__u64 lost[4];    /* enum driver_lost */
	__u64 told, left; /* single events, and those that only sums tell of */
	__u64 isr_ns;     /* the last interrupt began */
	__u64 rest[DRIVER_KINDS]; /* no row had room for them */
};

enum driver_lost { DRIVER_LOST_RING, DRIVER_LOST_SPACES, DRIVER_LOST_THREADS, DRIVER_LOST_TEXTS };
