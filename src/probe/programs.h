/* SPDX-License-Identifier: MIT */
/*
 * The eBPF programs in the kernel: loaded for one mechanism of hooking, with their settings fixed,
 * their maps and rings. Knows nothing of modules and functions, nor of what becomes of the records.
 *
 *   programs_load -> programs_follow_processes -> (attach.h) -> programs_ring ... -> programs_free
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/wire.h"
#include "probe/kernel_features.h"
#include "probe/rings.h"

/* The ladder, best first. */
enum mechanism {
	MECHANISM_SESSION, /* one link a file, entry and return in one program */
	MECHANISM_MULTI,   /* one link a file for entries, one for returns */
	MECHANISM_SINGLE,  /* a perf event a function, with a cookie */
	MECHANISM_STUB,    /* the same without cookies: a program a function */
};

const char *mechanism_name(enum mechanism mechanism);
enum mechanism mechanism_best(struct kernel_features *features);

/* What hooks of wire_hooks.h there may be. */
enum own_hooks_kind {
	OWN_HOOKS_USER = 1 << 0,   /* functions and markers of files */
	OWN_HOOKS_KERNEL = 1 << 1, /* functions of the kernel */
	OWN_HOOKS_TRACE = 1 << 2,  /* tracepoints */
};

struct programs_options {
	enum mechanism mechanism;
	struct wire_settings settings; /* self_tgid and the ring fields are filled here */
	size_t ring_bytes;             /* of all rings together; 0: 8 MiB a CPU, 256 MiB at most */
	bool hold;                     /* processes may be held at mmap */
	bool stacks;                   /* the programs that can walk stacks */
	unsigned own_hooks;            /* enum own_hooks_kind: those that users ask for */
};

struct programs;

#define PROGRAMS_REFUSED                                                                           \
	"the kernel refuses eBPF programs: cuscope needs root, or CAP_BPF, CAP_PERFMON and "       \
	"CAP_SYS_PTRACE (try sudo; 'cuscope doctor' tells more)"

/* -EPERM names the capabilities that are missing; other failures carry the verifier's
 * last words. */
int programs_load(const struct programs_options *options, struct programs **programs,
                  struct err *err);
void programs_free(struct programs *programs); /* detaches everything */

/*
 * Attaches to fork, exec, exit and, where tracefs allows, mmap. *mmap_seen tells whether mappings
 * are reported.
 */
int programs_follow_processes(struct programs *programs, bool *mmap_seen, struct err *err);

/* From now on no thread is stopped and no mapping reported. Those that were sent a signal
 * have it. */
void programs_stop_holding(struct programs *programs);
/* The same for one target: hold_let_go comes next. */
void programs_stop_holding_one(struct programs *programs, pid_t tgid);

enum mechanism programs_mechanism(const struct programs *programs);

/* The one at entries, or at returns where they are apart; `own`: of hooks of wire_hooks.h. */
int programs_probe_fd(const struct programs *programs, bool own, bool returns);

int programs_fd(const struct programs *programs, const char *name); /* of any program */

/* Shared memory with the programs: modes of hooks, counters. */
struct wire_state *programs_state(struct programs *programs);

/*
 * Adds what the programs had to leave out so far, by enum lost_reason (LOST_COUNT of them), and how
 * often the kernel did not run one because it was under way on that CPU already.
 */
void programs_lost(const struct programs *programs, uint64_t *lost);

/*
 * A program that leaves `cookie` where the program that it goes on to finds it: see MECHANISM_STUB.
 * `exit` is the array of that one ("stub_exit": call_enter). Caller closes.
 */
int programs_stub(struct programs *programs, const char *exit, uint64_t cookie, struct err *err);

/* A map of the programs, by its name there; -ENOENT where there is none. */
int programs_map(const struct programs *programs, const char *name);

/* ---- targets ------------------------------------------------------------------------------- */

/*
 * With settings.inside: the modules of a process whose calls an agent tells of, a bit for each
 * (wire_state.inside), and INSIDE_ANY for as long as there may be some; 0: it is a process like
 * others. When it maps a file (WIRE_MAPPED), only INSIDE_ANY is left. Of all other calls of such a
 * process the begin is told, too (WIRE_BEGIN): an agent's calls may be nested in them.
 */
void programs_inside_set(struct programs *programs, pid_t tgid, uint64_t modules);

/* In whose share of a map a process is: as bpf/users.h has it. */
uint32_t programs_user(struct programs *programs, pid_t tgid);
bool programs_may_have_more(const struct wire_rows *rows, uint32_t user, int64_t most);
void programs_rows_change(struct wire_rows *rows, uint32_t user, int64_t more);

/* One that root has named: in nobody's share, unless it is one already. */
int programs_target_add(struct programs *programs, pid_t tgid, uint32_t flags);
/* One that was found: false where its user has his share, or there is no room. */
bool programs_target_found(struct programs *programs, pid_t tgid, uint32_t flags);
void programs_target_remove(struct programs *programs, pid_t tgid);

/* Whether a process is one now: added, or followed from its parent's fork on. */
bool programs_target_has(struct programs *programs, pid_t tgid);
void programs_thread_forget(struct programs *programs, pid_t tid);      /* and the calls it is in */
bool programs_thread_known(const struct programs *programs, pid_t tid); /* it made a call */
/* Whether a thread is in a call at this moment; then *begin_ns is when the outermost began. */
bool programs_thread_in_call(const struct programs *programs, pid_t tid, uint64_t *begin_ns);
/* What a signal that stopped a thread of a held command was, as it was sent; once. */
enum held programs_thread_held(struct programs *programs, pid_t tid);
/*
 * Those that were added or followed, not those of settings.all and settings.cgroup: `n` of them,
 * which the caller frees. NULL: they are so many that some may be missing.
 */
uint32_t *programs_targets(struct programs *programs, size_t *n);

/*
 * With stacks: a process that is no target, of which samples and blocked time are told all the
 * same, until it ends or executes something. `n`: how many there are then. On any thread: whether
 * it is one.
 */
int programs_waker_add(struct programs *programs, pid_t tgid, size_t n);
void programs_waker_remove(struct programs *programs, pid_t tgid, size_t n);
bool programs_waker_has(const struct programs *programs, pid_t tgid);

int programs_cgroup_set(struct programs *programs, int cgroup_fd);

/* Processes whose name matches become targets: with settings.name. */
int programs_name_set(struct programs *programs, const struct wire_glob *glob);

/* Mappings of this file need no more reports, but for what the flags (enum known_flags) say. */
void programs_file_known(struct programs *programs, const struct wire_file *file, uint64_t flags);

/* From now on they are, each time; a held process waits meanwhile. */
void programs_file_unknown(struct programs *programs, const struct wire_file *file);

/* The file that a thread was stopped for last; false where there is none. */
bool programs_held_for(struct programs *programs, pid_t tid, struct wire_file *file);

/* ---- records ------------------------------------------------------------------------------- */

/* All rings; they live as long as the programs. */
struct rings *programs_rings(struct programs *programs);

/* To be called before the rings are read: from now on a ring that fills up may wake us again. */
void programs_awake(struct programs *programs);

typedef void (*programs_record_fn)(void *data, const struct wire_head *record, size_t bytes);

/* The tids of the map of threads, each once, `n` of them; the caller frees them. */
uint32_t *programs_threads(struct programs *programs, size_t *n);

/* Hands the calls that threads are in at this moment to `each`, as unfinished, ended now, with
 * their places on the stack. */
void programs_open_calls(struct programs *programs, programs_record_fn each, void *data);
