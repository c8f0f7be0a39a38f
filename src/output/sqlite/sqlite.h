/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the database format share. Private to those, which write:
 * - sqlite.c: calls, processes and threads; how well GPUs were used; who processes are
 * - sqlite_gpu.c: what ran on the GPU, what became of memory, contexts and streams
 * - sqlite_stacks.c: stacks and samples; NVTX ranges and overhead
 * - sqlite_waits.c: waits, which are told at the end
 * - sqlite_run.c: how it was recorded and what was missed; the machine and its GPUs
 */
#pragma once

#include "analysis/event_waits.h"
#include "analysis/memory.h"
#include "output/format.h"
#include "output/sqlite/database.h"
#include "output/who.h"

/* A serialized GlobalId: hardware 8 bits, machine 8, pid 24, tid 24. There is one machine. */
#define MACHINE   (1ll << 48)
#define PID_SHIFT 24
#define LOW_24    0xffffff

#define CODES 1024 /* results below this are remembered in a bitmap */

/* Ids of strings; 0: none, or not asked for yet. */
struct kernel_ids {
	int64_t demangled, base, mangled;
};

struct sqlite_change {
	struct memory_allocation allocation;
	enum memory_fate fate;
	uint64_t kind_live, live; /* of the process, after it */
};

/* That a process had work on, a bit each. */
struct sqlite_devices {
	uint32_t pid;
	uint64_t used;
};

struct sqlite {
	struct sink sink; /* first */
	struct database *db;
	uint64_t end_ns; /* of the run, where it is read from a file; else UINT64_MAX */
	struct memory *memory;
	uint64_t memory_bytes;         /* that the current call made or freed */
	struct sqlite_change *changes; /* that the current event made */
	size_t n_changes, max_changes;
	int64_t *functions; /* by id: of their names */
	size_t n_functions;
	struct kernel_ids *kernels; /* by id */
	size_t n_kernels;
	struct sqlite_devices *devices; /* by process id */
	size_t n_devices;
	struct who who;
	struct contexts *contexts;
	struct event_waits *event_waits;
	struct sqlite_stream *streams; /* that something ran on, by process and context */
	struct sqlite_domain *domains; /* of NVTX, by process and name */
	struct sqlite_waits *waits;    /* NULL: none so far */
	struct sqlite_frame *frames;   /* by id */
	size_t n_frames;
	uint8_t *stacks; /* by id: 1 where it is written */
	size_t n_stacks;
	int64_t n_samples;
	bool chain_of_none;             /* one of these had no stack */
	uint32_t metrics[RUN_GPUS_MAX]; /* by GPU: a bit for each that has its name */
	uint64_t results[LAYERS_OF_CUDA]
			[CODES / 64]; /* by layer: those that are in cuscope_result */
};

/*
 * What makes the rows of `db`, which it closes, for another format that stands in front of it: as
 * sink.c does it gives its `format` all events, with sink.begin_ns and sink.wanted set.
 */
struct sqlite *sqlite_rows_new(const struct sink_options *options, struct database *db);

struct kernel_ids sqlite_kernel_ids(struct sqlite *sqlite, const struct kernel *kernel);

/*
 * A correlation is a number within its process. Many queries join by it alone, so it is made
 * unique here; the first process, mostly the only one, keeps its numbers.
 */
#define CELL_CORRELATION(process, number)                                                          \
	CELL_IF((uint64_t)(process)->id << 40 | (number), (number) != 0)

#define CELL_THREE(dims, known)                                                                    \
	CELL_IF((dims)[0], known), CELL_IF((dims)[1], known), CELL_IF((dims)[2], known)

/* For memory_tell_changes(); `data` is the struct sqlite. Kept until it is known whether the
 * event shows. */
void sqlite_note_change(void *data, const struct memory_change *change);

/* What the event did to memory; `id` is the call's row, 0 where it is none. */
void sqlite_add_memory(struct sqlite *sqlite, const struct event *event, int64_t id);

void sqlite_add_activity(struct sqlite *sqlite, const struct event *event);
void sqlite_add_range(struct sqlite *sqlite, const struct event *event);

/* The number of a stack, which is written when it is first asked for. NULL: 0. */
int64_t sqlite_callchain(struct sqlite *sqlite, const struct stack *stack);
void sqlite_add_sample(struct sqlite *sqlite, const struct event *event);
void sqlite_free_domains(struct sqlite *sqlite);

/*
 * A wait of the GPU's (RANGE_SYNC), and one that a call tells; `waited_for`: the number of the
 * event, 0: none, or not known.
 */
void sqlite_wait_of_gpu(struct sqlite *sqlite, const struct event *event);
void sqlite_wait_of_call(struct sqlite *sqlite, const struct event *event, int type,
                         uint64_t waited_for);
void sqlite_add_waits(struct sqlite *sqlite); /* after the last of them */
void sqlite_free_waits(struct sqlite *sqlite);

void sqlite_note_device(struct sqlite *sqlite, const struct event *event);
void sqlite_add_streams(struct sqlite *sqlite);
void sqlite_free_streams(struct sqlite *sqlite);
void sqlite_add_run(struct sqlite *sqlite, const struct run_info *run);

static inline int64_t global_pid(const struct process *process)
{
	return MACHINE | (int64_t)(process->pid & LOW_24) << PID_SHIFT;
}

static inline int64_t global_tid(const struct event *event)
{
	return global_pid(event->process) | (event->tid & LOW_24);
}

/* Since the session's start, as all times in these databases are. */
static inline int64_t since_begin(const struct sqlite *sqlite, uint64_t time_ns)
{
	return (int64_t)(time_ns - sqlite->sink.begin_ns);
}
