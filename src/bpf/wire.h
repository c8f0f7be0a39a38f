/* SPDX-License-Identifier: MIT */
/*
 * The records that eBPF programs and user space share: what travels through the rings, what is
 * packed into a hook's cookie, and the settings that decide which paths of the programs exist.
 *
 * Identity travels once (wire_process, wire_name); a call carries ids and only the words that its
 * function's plan asks for.
 */
#pragma once

#ifndef __bpf__
#include <stdint.h>
#include <linux/types.h>
#endif

#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define WIRE_REGS 8u /* x0..x7 */
#else
#define WIRE_REGS 6u /* rdi rsi rdx rcx r8 r9 */
#endif
#define WIRE_OUTS  2u
#define WIRE_STACK 6u
#define WIRE_BLOB  31u
/* Fixed places of the words of a call; a record ends after the last word that its plan needs. */
#define WIRE_AT_REG   WIRE_OUTS
#define WIRE_AT_STACK (WIRE_AT_REG + WIRE_REGS)
#define WIRE_AT_BLOB  (WIRE_AT_STACK + WIRE_STACK)
#define WIRE_WORDS    (WIRE_AT_BLOB + WIRE_BLOB)

#define WIRE_HOOKS_MAX  16384 /* hooks alive at a time, over all modules: a cookie's 14 bits */
#define WIRE_DEPTH_MAX  4     /* calls inside calls of one thread; cudart on libcuda needs 2 */
#define WIRE_STRING_MAX 4096  /* bytes of a name with its NUL; CUTLASS kernels pass 2,000 */
#define WIRE_NAME_MAX   256   /* bytes of a file's name with its NUL */
#define WIRE_RINGS_MAX  64
#define WIRE_LOST       32 /* reasons; those that are not the programs' stay 0 */
#define WIRE_SHARES     8
#define WIRE_USERS      4096u /* places for them; few have one together: a power of two */
#define WIRE_NO_OFFSET  (~0ull)
#define WIRE_RECENT     16 /* a power of two; saves the look-up of most launches */

enum wire_type {
	WIRE_CALL = 1, /* struct wire_call: a call that ended, or will not be followed further */
	WIRE_BEGIN,    /* struct wire_call: an entry, when begin and end are asked for apart */
	WIRE_NAME,     /* struct wire_name */
	WIRE_THREAD,   /* struct wire_process: first hit of a thread */
	WIRE_FORK,     /* struct wire_process: other = the child's tgid */
	WIRE_EXEC,     /* struct wire_process */
	WIRE_EXIT,     /* struct wire_process: the whole process ended */
	WIRE_MAP,      /* struct wire_map: an executable mapping of a file not seen before */
	WIRE_NAMED,    /* struct wire_process: a new name made the process a target */
	WIRE_MOVED,    /* struct wire_process: it came into the cgroup */
	WIRE_STACK_ENTRIES, /* struct wire_stack_entries of wire_stacks.h */
	WIRE_SAMPLE,        /* struct wire_sample of the same */
	WIRE_MAPPED,        /* struct wire_process: it maps a file for execution, whichever */
	WIRE_BACKWARD,      /* struct wire_call_stack: of who asks for a backward pass */
	WIRE_CALL_STACK,    /* struct wire_call_stack of the same */
	WIRE_BLOCKED,       /* struct wire_blocked of the same */
	WIRE_DRIVER_CALL,   /* struct wire_driver_call: a system call to the NVIDIA driver */
	WIRE_HOOK,          /* struct wire_hook of wire_hooks.h */
	WIRE_NODE,          /* struct wire_node_stack of wire_stacks.h */
};

enum wire_flags {
	WIRE_NESTED = 1 << 0,
	WIRE_NO_RETURN = 1 << 1,
	WIRE_UNFINISHED = 1 << 2,
	WIRE_UNREADABLE = 1 << 3, /* a stack word, output or struct could not be read */
	WIRE_BEGUN = 1 << 4,      /* a WIRE_BEGIN of this call went before */
	WIRE_TRUNCATED = 1 << 5,  /* of a name: a string longer than WIRE_STRING_MAX */
	WIRE_WALKED = 1 << 5,     /* of a call that an agent records: it has asked for a walk */
	WIRE_FOLDED = 1 << 6,     /* the first call of a row of sums, where it is counted */
	WIRE_BY_AGENT = 1 << 7, /* no program saw it: an agent told of it, see capture/gpu/gpu.h */
};

/*
 * A function of the agent's library that it calls where the stack of its thread is to be walked,
 * for a probe there. (what, kind, pc, sp, fp): kind is enum wire_stack_kind. Of STACK_OF_NODE
 * `what` is the number of a node that is made, and nothing comes behind kind. Of calls that it
 * records it is a wire_walk, and the walk begins at the entry of the called function: pc
 * is its address, at sp lies the return address, fp is the caller's frame pointer.
 */
#define WIRE_WALK_FUNCTION "cuscope_agent_walk"

struct wire_head {
	__u8 type;
	__u8 flags;
	__u8 depth;
	__u8 words; /* of a call */
	__u16 hook;
	union {
		__u16 bytes; /* of a name, with its NUL */
		__u16 walk;  /* of a call with WIRE_WALKED: of wire_walk */
	};
	__u32 tgid;
	__u32 tid;
	__u64 time_ns; /* CLOCK_MONOTONIC; the order of the stream */
};

struct wire_call {
	struct wire_head head; /* time_ns: the end, or the entry where there is no end */
	__u64 begin_ns;
	__s32 result;
	union {
		/* of fold_launch_key: WIRE_FOLDED, and what unloads where calls fold; else 0 */
		__u32 generation;
		/* wire_place of WIRE_BEGIN and of what agents tell, until it is known what they are
		 * nested in; 0: not known */
		__u32 place;
	};
	__u64 word[WIRE_WORDS];
};
#define WIRE_CALL_BYTES(words) (40 + 8 * (words))

/*
 * Where a call's return address lies: the low half of its address, a multiple of 8. WIRE_MAY_RETURN
 * is set where the call may return to the kernel's trampoline, which is at the begin of a page.
 */
#define WIRE_MAY_RETURN 1u

static inline __u32 wire_place(__u64 sp, __u64 back)
{
	return (__u32)(sp & ~7ull) | (back & 4095 ? 0 : WIRE_MAY_RETURN);
}

/* A walk that an agent asks for: a number of its thread's, from 1 to 65535 and again, and the
 * wire_place of the call. */
static inline __attribute__((always_inline, unused)) __u64 wire_walk(__u16 number, __u32 place)
{
	return (__u64)number << 32 | place;
}

enum wire_name_source {
	NAME_OF_HANDLE = 1, /* read through the handle of a launch: to be verified */
	NAME_OF_CALL,       /* given by the program to the call that made `key` */
	NAME_OF_ARGUMENT,   /* a string argument of the thread's next call of this hook */
};

struct wire_name {
	struct wire_head head;
	__u64 key;  /* the handle or host stub that is named; 0 for NAME_OF_ARGUMENT */
	__u64 from; /* its address: head.bytes is 0 where the page was not resident, which a */
		    /* program cannot wait for; user space may */
	__u32 source;
	__u32 reserved;
	char text[WIRE_STRING_MAX];
};
#define WIRE_NAME_BYTES(text) (48 + (text))

struct wire_process {
	struct wire_head head;
	__u32 other;
	__u32 named; /* WIRE_EXEC: its name has made it a target */
	char comm[16];
	__u64 born_ns; /* WIRE_THREAD where calls are folded: see wire_fold.h; else 0 */
};

/* ---- system calls to devices of the NVIDIA driver ---------------------------------------------
 */

enum wire_syscall { SYSCALL_IOCTL = 1, SYSCALL_OPEN, SYSCALL_CLOSE, SYSCALL_MMAP, SYSCALL_POLL };

/* What is read of the parameters of an ioctl: see nvidia/decode.h. */
#define WIRE_DRIVER_HEAD   128
#define WIRE_DRIVER_TAIL   16
#define WIRE_DRIVER_PARAMS 160
#define WIRE_DRIVER_DATA   (WIRE_DRIVER_HEAD + WIRE_DRIVER_TAIL + WIRE_DRIVER_PARAMS)

struct wire_driver_call {
	struct wire_head head; /* words: enum wire_syscall; hook: the kind of device; bytes: of */
			       /* `data`; time_ns: the end. WIRE_UNREADABLE: not all was read */
	__u64 begin_ns;
	__s64 result;
	__u64 argument[3]; /* ioctl: command, where the block is; mmap: address, bytes; poll: */
			   /* descriptors, timeout in ms */
	__u32 number;      /* ioctl: without XFER_CMD around it */
	__u32 block_bytes; /* as the command says; 0: it does not */
	__u32 minor;
	__s32 fd;
	__u16 head_bytes, tail_at, tail_bytes, params_bytes; /* that were read */
	__u8 data[WIRE_DRIVER_DATA]; /* head, tail and parameters, at fixed places */
};
#define WIRE_DRIVER_BYTES(count) (__builtin_offsetof(struct wire_driver_call, data) + (count))

/* Numbers of devices, by kind; and how much there is to read of UVM's ioctls, which do not say. */
#define WIRE_DEVICES      8
#define WIRE_UVM_NUMBERS  128 /* a power of two: those below it, and the first two: */
#define WIRE_UVM_BEGIN    0x30000001u
#define WIRE_UVM_END      0x30000002u
#define WIRE_DRIVER_UVM   4 /* enum nvidia_device: from which on the command is the number */
#define WIRE_DRIVER_TOOLS 5

struct wire_device {
	__u32 major, first, last, kind; /* minors; kind 0: none */
};

struct wire_window {
	__u16 head, tail_at, tail, unused;
};

/*
 * What a file is: an inode number alone is used again by the next file, and a file can be written
 * anew, so its size and the time of its last change belong to it. See file_stamp().
 */
struct wire_file {
	__u64 inode;
	__u64 dev; /* as the kernel packs it: major << 20 | minor */
	__u64 stamp;
};

static inline __attribute__((always_inline, unused)) __u64
wire_file_stamp(__u64 bytes, __u64 changed_seconds, __u64 changed_ns)
{
	__u64 stamp = (bytes ^ changed_seconds * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;

	stamp = (stamp ^ stamp >> 32 ^ changed_ns) * 0xc4ceb9fe1a85ec53ull;
	return (stamp ^ stamp >> 29) | 1; /* 0 is no file's */
}

struct wire_map {
	struct wire_head head; /* bytes: of the path */
	struct wire_file file;
	__u64 born_ns; /* of the process: with its id, a name that is not used again */
	__u32 parent;  /* of the process */
	__u32 uid;     /* its real one */
	__u8 held;     /* the thread stops on its way out of mmap */
	__u8 program;  /* by exec: it is the process's program */
	__u8 known;    /* it was hooked beforehand, and this is its first user */
	__u8 reserved[5];
};

#define WIRE_PATH_MAX   4096 /* a power of two */
#define WIRE_PATH_DEPTH 40   /* folders and mounts of a path */

/* The path's names from the file up to the root of its mounts, each with its NUL. */
struct wire_map_path {
	struct wire_map map;
	char names[WIRE_PATH_MAX + WIRE_NAME_MAX];
};

/* What user space knows of a file (map "known_files"). */
enum known_flags {
	KNOWN_TELL = 1 << 0, /* hooked beforehand: its first mapping is to be told */
	KNOWN_CUDA = 1 << 1, /* it has CUDA functions: who maps it uses them */
};

struct wire_known {
	__u64 stamp;
	__u64 flags;
};

/*
 * What a call is for those who ask for stacks. Each kind has a clock of its own in each thread, so
 * that many calls of one do not take the walks of another.
 */
enum wire_stack_kind {
	STACK_OF_NOTHING,
	STACK_OF_NODE = STACK_OF_NOTHING, /* of a graph: no call's kind, and a clock is free here */
	STACK_OF_LAUNCH,                  /* of a kernel or a graph */
	STACK_OF_COPY,                    /* or of a set */
	STACK_OF_WAITING_COPY,
	STACK_OF_WAIT,
	STACK_OF_ALLOCATION,
	STACK_OF_FREE,
	STACK_OF_HOOK,       /* of a span of a hook of one's own */
	WIRE_STACK_KINDS = 8 /* a power of two */
};

/* ---- what a thread is doing (map "threads", by tid) ------------------------------------------ */

/* A call in progress: the record as it will be sent, filled on entry, completed on return. */
struct wire_frame {
	__u64 sp; /* on entry: what a return is matched with */
	__u64 cookie;
	struct wire_call call;
};

/* What a free that a thread is in has taken out of "fold_live", to be put back if it fails. */
struct wire_freed {
	__u64 time_ns; /* of the allocation; 0: nothing */
	__u64 address, bytes, stack;
	__u16 hook, user;
	__u16 memory, space;
};

/* Times of one kind that are told together. */
struct wire_sum {
	__u64 ns, count;
};

#define WIRE_BLOCKED_PLACES 4 /* a power of two */

/* What a thread waits for, as its registers and files tell: see capture/stacks/wakers.h. */
struct wire_wait {
	__s32 call;  /* the system call that it is in; -1: none, an exception */
	__u16 mode;  /* of the file that the call is about */
	__u16 flags; /* enum wire_wait_flags of wire_stacks.h */
};

/* Since when a thread is blocked; and how its last stretches were, which tells what to walk. */
struct wire_blocking {
	__u64 since_ns; /* 0: it is not blocked */
	__u64 stack;    /* where; 0: it was not walked */
	__u64 woken_ns;
	__u32 waker_tid; /* 0: it was an interrupt */
	__u8 stopped;    /* for its tracer */
	__u8 held;       /* which was cuscope */
	__u8 timed_out;  /* a timer woke it */
	__u8 unused;
	char waker[16];
	__u32 waker_tgid, reserved;
	__u64 credit_ns, credited_ns;   /* for walks: see blocked.h */
	struct wire_sum brief, skipped; /* too short to be told one by one; without a stack */
	__u64 told_ns;                  /* when these two were */
	__u32 place;                    /* where it is blocked: of `places` */
	__u32 places[WIRE_BLOCKED_PLACES];
	__u8 briefs[WIRE_BLOCKED_PLACES]; /* how many in a row were brief there */
	__u64 preempted;                  /* it is not blocked: another one has its CPU */
	/* with settings.host_waits: */
	struct wire_wait wait;
	__u64 looked_ns, looked_at;  /* when that was looked at, and of which wait */
	__u64 tells_ns, tells_at_ns; /* credit for telling what has no stack */
	struct wire_sum cpu;         /* times without a CPU that are not told one by one */
};

/* Of a thread, and what it did before: whether a program runs in the same trap as one before it. */
struct wire_trap {
	__u64 ip, sp, ns;
	__u64 stayed; /* page faults of the thread, and how often it slept */
	__u64 preempted;
	__u32 hook;
	__u32 looked; /* at these two */
};

struct wire_thread {
	__u64 born_ns; /* of its process, where calls are folded */
	__u32 tgid;    /* a mismatch means that the tid was reused */
	__u32 depth;
	__u32 of_waker; /* of no target: its samples and blocked time alone are told */
	__u32 user;     /* as it was met: see users.h */
	struct wire_blocking blocking; /* beside what is asked whenever it is switched */
	struct wire_freed freed;
	__u32 declined; /* calls that were not looked at and whose returns are still to come */
	__u32 runtime_hook;
	struct wire_trap entry, returned, own; /* the last of each; own: of a user's hook */
	__u64 stack_ns[WIRE_STACK_KINDS];      /* by kind: see call_stacks.h */
	__u64 allocation_stack; /* of the call that is under way, where calls are folded */
	__u64 declined_sp;      /* of the outermost call that was not looked at */
	/* A call of the runtime without a return of which no driver call was seen yet; 0: none. The
	 * return address tells whether it is still under way. */
	__u64 runtime_sp, runtime_back;
	__u32 hook_depth[2];     /* calls that it is in: of the user's functions, of the kernel's */
	__u64 recent_generation; /* of its process's kernels: older ones are void */
	__u64 recent[WIRE_RECENT]; /* kernels that this thread launched and that are named */
	struct wire_frame frame[WIRE_DEPTH_MAX];
};

/* ---- what user space tells the programs ---------------------------------------------------- */

/* A hook's cookie: its number and its capture plan, so that a hit looks nothing up. */
#define COOKIE_NONE 15 /* an index field that names no register */
#define COOKIE_FIELDS(F)                                                                           \
	F(hook, 0, 14)                                                                             \
	F(moved, 14, 1) /* it has a link of its own: looked at while HOOK_MOVED is set */          \
	F(words, 16, 6) /* of the record */                                                        \
	F(stack, 22, 3)                                                                            \
	F(out0, 25, 4)                                                                             \
	F(out1, 29, 4)                                                                             \
	F(out0_wide, 33, 1) /* 8 bytes rather than 4 */                                            \
	F(out1_wide, 34, 1)                                                                        \
	F(blob, 35, 4)                                                                             \
	F(blob_words, 39, 5)                                                                       \
	F(blob_on_return, 44, 1)                                                                   \
	F(string, 45, 4)                                                                           \
	F(kernel, 49, 4)                                                                           \
	F(name_key, 53, 4)                                                                         \
	F(forgets_kernels, 57, 1)                                                                  \
	F(runtime, 58, 1)        /* of the runtime: the driver's call inside tells the same */     \
	F(runtime_launch, 59, 1) /* looked at only while the driver is not known to work */        \
	F(proves_driver, 60, 1)  /* where it succeeds, the driver works */                         \
	F(stack_kind, 61, 3)     /* enum wire_stack_kind: whose stack it is */

#define COOKIE_ACCESSORS(name, at, bits)                                                           \
	static inline __attribute__((always_inline, unused)) __u32 cookie_##name(__u64 cookie)     \
	{                                                                                          \
		return cookie >> at & ((1u << bits) - 1);                                          \
	}                                                                                          \
	static inline __attribute__((always_inline, unused)) __u64 cookie_with_##name(__u64 value) \
	{                                                                                          \
		return (value & ((1u << bits) - 1)) << at;                                         \
	}
COOKIE_FIELDS(COOKIE_ACCESSORS)

/* ---- which names are meant ---------------------------------------------------------------- */

#define WIRE_GLOB_WORDS 4 /* a bit for each byte of a name, and one for its end */

/* See probe/name_glob.h. Bit n of a set: the place n is the next, or may stay it. */
struct wire_glob {
	__u64 takes[256][WIRE_GLOB_WORDS]; /* by byte: the places that it fits */
	__u64 waits[WIRE_GLOB_WORDS];      /* places before which there is a star */
	__u64 end[WIRE_GLOB_WORDS];        /* the one after the last */
};

/* One byte of a name. A loop would do; the programs want it without one inside another. */
static inline __attribute__((always_inline, unused)) void
wire_glob_step(const struct wire_glob *glob, __u8 byte, __u64 at[WIRE_GLOB_WORDS])
{
	__u64 m0 = at[0] & glob->takes[byte][0], m1 = at[1] & glob->takes[byte][1];
	__u64 m2 = at[2] & glob->takes[byte][2], m3 = at[3] & glob->takes[byte][3];

	at[0] = m0 << 1 | (at[0] & glob->waits[0]);
	at[1] = m1 << 1 | m0 >> 63 | (at[1] & glob->waits[1]);
	at[2] = m2 << 1 | m1 >> 63 | (at[2] & glob->waits[2]);
	at[3] = m3 << 1 | m2 >> 63 | (at[3] & glob->waits[3]);
}

static inline __attribute__((always_inline, unused)) int
wire_glob_ended(const struct wire_glob *glob, const __u64 at[WIRE_GLOB_WORDS])
{
	return ((at[0] & glob->end[0]) | (at[1] & glob->end[1]) | (at[2] & glob->end[2]) |
	        (at[3] & glob->end[3])) != 0;
}

/* In the map "inside", where no module has a bit of its own. */
#define INSIDE_ANY 1ull

enum hook_mode {
	HOOK_IGNORE = 1 << 0,     /* hits are dropped; for the time until its link is closed */
	HOOK_ENTRY_ONLY = 1 << 1, /* sessions decline the return */
	HOOK_RETURN_GONE =
		1 << 2,       /* set later than the one above: no return probe is left either */
	HOOK_MOVED = 1 << 3,  /* of its two links only that with such a cookie is looked at */
	HOOK_DOUBLE = 1 << 4, /* another module may be of the same file: see same_trap() */
	HOOK_GIVEN_UP = HOOK_IGNORE | HOOK_ENTRY_ONLY | HOOK_RETURN_GONE, /* or a part of it */
};

/*
 * A stop of a thread for its tracer: ours alone, or the same signal was already on its way to that
 * very thread, when the kernel makes one of the two.
 */
enum held { HELD_NOT, HELD_OURS, HELD_OURS_AND_THEIRS };

enum target_flags {
	TARGET_HOLD = 1 << 0,   /* traced with ptrace: hold it when it maps an unknown file */
	TARGET_FOLLOW = 1 << 1, /* its children are targets, with the same flags */
};

/* What follows the flags in the map "targets": in whose share it is, see users.h. */
#define WIRE_TARGETS_MAX  16384
#define TARGET_USER_SHIFT 16
#define TARGET_FLAGS      ((1u << TARGET_USER_SHIFT) - 1)

/* Read-only once loaded: what is not asked for is removed by the verifier. */
struct wire_settings {
	__u8 never;          /* 0; keeps a path that is never taken: see cuscope.bpf.c */
	__u32 self_tgid;     /* cuscope itself: a target only while it measures its own cost */
	__u32 ring_mask;     /* number of rings - 1 */
	__u32 wake_bytes;    /* fill of a ring at which the reader is woken */
	__u8 all;            /* every process is a target */
	__u8 cgroup;         /* processes under cgroups[0] are */
	__u64 cgroup_id;     /* its number */
	__u8 cookies;        /* bpf_get_attach_cookie exists; else the stubs leave it in scratch */
	__u8 returns;        /* hook returns at all */
	__u8 nested_returns; /* of nested calls too; always so without sessions */
	__u8 begin_records;  /* WIRE_BEGIN for every entry */
	__u8 seccomp_entry_only; /* the kernel's uretprobe call would kill threads under seccomp */
	__u8 name;               /* processes whose name matches name_glob are */
	__u8 follow;             /* those that become targets by name: TARGET_FOLLOW */
	__u8 inside;             /* agents tell of calls: the map "inside" */
	__u8 own_hooks;          /* hooks of --hook: wire_hooks.h */
	__u8 fold;        /* enum fold_tool of wire_fold.h; calls are summed up and not sent */
	__u8 cuda_only;   /* of processes without CUDA nothing is told: see process_uses_cuda() */
	__u8 stacks;      /* of allocations that are folded */
	__u64 stack_seed; /* by chance: no process can have the numbers of another one's stacks */
	__u64 sample_ns;  /* between two samples of a CPU; 0: none are taken */
	__u8 call_stacks; /* a bit for each enum wire_stack_kind */
	__u32 call_stack_one_in;  /* launches, copies. 1: each; else one in so many, by chance */
	__u64 call_stack_ns;      /* between two of a thread, on average; 0: as they come */
	__u8 blocked;             /* how long threads are blocked, and where */
	__u64 blocked_ns;         /* shorter ones are added up */
	__u8 walk_blocked;        /* with their stacks */
	__u8 host_waits;          /* with what they wait for, and how long for a CPU */
	__u8 bare_waits;          /* stacks of system calls end where the kernel begins */
	__u8 driver_calls;        /* system calls to the NVIDIA driver */
	__u32 share[WIRE_SHARES]; /* enum fold_share_of: rows that one process may have */
};

/* Map "uid_ranges": uids that begin with so many bits, by whose they are. */
#define WIRE_UID_RANGES 65536
struct wire_uids {
	__u32 bits, first; /* big-endian */
};

/* Of processes: few share one, and by `kernels_mix` nobody can choose whose. A power of two. */
#define WIRE_KERNELS_SLOTS 16384u

/* Of a map that users share: rows in it, and of them each user's. */
struct wire_rows {
	__s64 all, of[WIRE_USERS];
};

/* Written by both sides while running. */
struct wire_state {
	__u64 lost[WIRE_LOST];  /* by enum lost_reason of src/trace/event.h */
	__u64 filtered;         /* hits of processes that are no targets */
	__u64 blocked_begin_ns; /* threads that are older may be blocked since before it */
	__u64 wakers;           /* processes in the map "wakers" */
	__u64 own_double;       /* not 0: HOOK_DOUBLE, of all hooks of users */
	__u64 open_captures;    /* streams that record into a graph, where calls are folded */
	__u64 lost_rows;        /* folded calls that no map had room for */
	__s64 live_rows;        /* of "fold_live", and by user: see users.h */
	__s64 user_rows[WIRE_USERS];
	__s64 threads; /* in the map, and by user */
	__s64 user_threads[WIRE_USERS];
	struct wire_rows targets, born; /* of "targets" and "fold_born" */
	__u64 lost_stacks;     /* of allocations that are folded, and of hooks: no slot was free */
	__u64 stacks_left_out; /* of allocations that came too fast for their stacks */
	__u64 driver_tells;    /* not 0: runtime calls without a return are left out, since the */
	/* driver's inside tell the same; those without one are counted in `alone` */
	__u64 driver_works; /* not 0: launches of the runtime reach the driver, and are */
	/* looked at there alone */
	__u64 launches_refused; /* not 0: they may not: they are looked at in both */
	__u32 kernels_mix;      /* see wire_kernels_generation */
	__u32 stacks_turn;      /* grows when user space is to be sent all stacks again */
	__u64 name_offset;      /* of the name's pointer in a kernel handle; user space */
	/* corrects it when it finds another, or WIRE_NO_OFFSET */
	struct wire_device devices[WIRE_DEVICES];
	struct wire_window uvm_windows[WIRE_UVM_NUMBERS];
	__u32 kernels_generation[WIRE_KERNELS_SLOTS];
	__u64 alone[WIRE_HOOKS_MAX]; /* calls of the runtime that reached no hook of the driver */
	__u8 woken[WIRE_RINGS_MAX];  /* the reader was woken and has not drained yet */
	__u8 mode[WIRE_HOOKS_MAX];   /* enum hook_mode */
	__u8 inside[WIRE_HOOKS_MAX]; /* which bit of the map "inside" leaves it to an agent; 0: */
				     /* it is always looked at */
};

/*
 * Grows when the process unloads a module: its kernels' names are sent again, and counted as those
 * of others.
 */
static inline __attribute__((always_inline, unused)) __u32
wire_kernels_slot(const struct wire_state *of, __u32 tgid)
{
	return tgid * of->kernels_mix >> 18;
}

static inline __attribute__((always_inline, unused)) __u32
wire_kernels_generation(const struct wire_state *of, __u32 tgid)
{
	return __atomic_load_n(&of->kernels_generation[wire_kernels_slot(of, tgid)],
	                       __ATOMIC_RELAXED);
}

/* Whether launches are to be looked at in the runtime as well as in the driver. */
static inline __attribute__((always_inline, unused)) int
wire_runtime_launches(const struct wire_state *of)
{
	return !of->driver_works || of->launches_refused;
}
