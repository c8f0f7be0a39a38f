/* SPDX-License-Identifier: MIT */
/*
 * The trace model. A source (a live capture, later a trace file) turns its records into `struct
 * event`, in order of time, and pushes them to consumers; a consumer cannot tell which source
 * feeds it. Analyses and output formats are consumers and nothing else.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC. Objects that events point to (process, function,
 * kernel) belong to the source and live until the consumer's end() has returned.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cuda/api.h"
#include "gpus/gpu_metrics.h"
#include "trace/stack.h"

/* A traced process. One pid can belong to several of these over a run: exec starts a new one. */
struct process {
	uint32_t id;   /* dense, from 0: usable as an array index */
	uint32_t pid;  /* thread group id, as the initial pid namespace counts */
	char comm[16]; /* the process's name when it was first seen, or since its exec */
	/* Which of several files that are read together (trace/together.h), and the machine that it
	 * was recorded on; else 0. */
	uint32_t file, machine;
	uint64_t person; /* whose it is (probe/person.h), as it was met */
};

#define PROCESS_UNTOLD (UINT64_MAX - 1) /* a person: the file is older than that is told */

/* Whose share of what is kept of a file a process has: of an older file's nobody knows. */
static inline uint64_t process_shares_with(const struct process *process)
{
	return process->person == PROCESS_UNTOLD ? 0 : process->person;
}

/* Tells it from processes of other machines that have its number. */
static inline uint64_t machine_pid(const struct process *process)
{
	return (uint64_t)process->machine << 32 | process->pid;
}

/* A thread of a traced process. A tid can be given to another one later. */
struct thread {
	char comm[16];    /* as the thread was called at its first call */
	int32_t priority; /* as top shows it: 20 for a thread with nice 0; 0: not known */
};

/* One hooked function of one module. */
struct function {
	uint32_t id;      /* dense, from 0 */
	const char *name; /* the exported name, version suffix "@@..." taken off */
	const char *lib;  /* base name of the module: "libcuda.so.1", "train" */
	enum api_layer layer;
	enum api_class cls;
	const struct api *api; /* NULL: no row, only name, time and result are known */
};

/* A kernel as a process knows it. */
struct kernel {
	uint32_t id;         /* dense, from 0 */
	const char *mangled; /* NULL while unresolved */
	const char *name;    /* demangled; "0x55.." or "app+0x1234" while unresolved */
	bool resolved;
};

enum call_flags {
	CALL_NESTED = 1 << 0,    /* made inside another traced call of the same thread */
	CALL_NO_RETURN = 1 << 1, /* only the entry was hooked: no end, no result */
	/* It never returned: the thread died, the process exec'ed, a longjmp or an exception
	 * skipped it, or the trace ended first. */
	CALL_UNFINISHED = 1 << 2,
	CALL_CAPTURED = 1 << 3,     /* recorded into a graph, did not run */
	CALL_FAILED = 1 << 4,       /* returned an error (a poll's "not ready" is none) */
	CALL_SIZE_UNKNOWN = 1 << 5, /* OP_COPY, OP_SET: how many bytes cannot be seen in the call */
};

struct call {
	const struct function *function;
	uint64_t correlation; /* number of the call in its process, from 1; 0: not followed */
	uint64_t begin_ns;
	uint64_t end_ns;      /* 0 with CALL_NO_RETURN and CALL_UNFINISHED */
	uint64_t overhead_ns; /* between the two, and the agent's: loading CUPTI in cuInit */
	uint32_t flags;
	uint32_t depth; /* 0 for a call that no other traced call made */
	int32_t result; /* cudaError_t or CUresult; 0 where there is none. Of */
	/* LAYER_KERNEL: the driver's status, or a negative errno */
	enum api_op op;       /* OP_NONE where function->api is NULL */
	struct api_call args; /* decoded; zeroed where function->api is NULL */
	uint64_t args_number; /* calls of a function with one number have the same; 0: not known */
	const struct kernel *kernel; /* OP_LAUNCH, else NULL */
	const struct stack *stack;   /* at which it began; NULL: not known, or not asked for */
	const char *text;            /* a T_STRING argument, or NULL; valid during event() only */
};

/* ---- activities: what ran on the GPU ------------------------------------------------------------
 *
 * Known only where GPU times were recorded. Numbers are CUPTI's: the default stream of a context
 * is 7, so that 0 is no stream.
 */
enum activity_kind {
	ACTIVITY_KERNEL,
	ACTIVITY_COPY,
	ACTIVITY_SET,
	ACTIVITY_GRAPH_RUN, /* a graph launch as a whole: where its nodes were not asked for */
	ACTIVITY_COUNT
};

/* How outputs name a kind of activity or of range. */
struct event_words {
	const char *op;         /* jsonl */
	const char *plain;      /* log, table */
	const char *csv;        /* layer, class and function */
	const char *category;   /* Perfetto */
	const char *chrome;     /* the category that HTA and nsys-jax look for; NULL: of ranges */
	const char *key, *many; /* `info`: as json, and as text */
	/* Of activities: */
	const char *title;     /* PyTorch's profiler: before the kinds of memory, or its number */
	const char *operation; /* Nsight Systems; of copies by direction: who_columns.h */
	const char *profile;   /* profiles */
};

/* CUpti_ActivityMemoryKind, by its numbers; those of nsys' export are one less. */
enum activity_memory {
	ACTIVITY_MEMORY_UNKNOWN,
	ACTIVITY_MEMORY_PAGEABLE,
	ACTIVITY_MEMORY_PINNED,
	ACTIVITY_MEMORY_DEVICE,
	ACTIVITY_MEMORY_ARRAY,
	ACTIVITY_MEMORY_MANAGED,
	ACTIVITY_MEMORY_DEVICE_STATIC,
	ACTIVITY_MEMORY_MANAGED_STATIC,
	ACTIVITY_MEMORIES
};

struct activity {
	enum activity_kind kind;
	uint64_t begin_ns, end_ns;
	uint64_t correlation; /* of the call that asked for it, in its process; 0: not known */
	uint32_t device, context, stream;
	const struct kernel *kernel; /* ACTIVITY_KERNEL, else NULL */
	uint32_t grid[3], block[3];
	uint32_t registers;                       /* a thread */
	uint32_t shmem_static, shmem_dynamic;     /* bytes */
	uint64_t graph, graph_node;               /* 0: not of a graph launch */
	uint64_t bytes;                           /* ACTIVITY_COPY, ACTIVITY_SET */
	enum api_direction direction;             /* ACTIVITY_COPY */
	enum activity_memory source, destination; /* ACTIVITY_SET: the destination only */
	uint32_t peer_device;                     /* destination of DIRECTION_P2P */
	/* Of a graph's node: at which the call began that was captured. NULL: none, or not known.
	 */
	const struct stack *stack;
};

/* ---- ranges: what the program says it does, and what CUPTI says of waits and of itself
 * ------------
 *
 * Known only where GPU times were recorded and these kinds were asked for.
 */
enum range_kind {
	RANGE_PUSHPOP,  /* NVTX, nested within its thread and domain */
	RANGE_STARTEND, /* NVTX, anywhere */
	RANGE_MARK,     /* NVTX, a moment: ends when it begins */
	RANGE_SYNC,     /* a wait of the host for the GPU, or of a stream for an event */
	RANGE_OVERHEAD, /* time that CUPTI and the driver spend on measuring, flushing, loading */
	RANGE_NOT_MEASURED, /* between two windows of --gpu-window: what ran then was not seen */
	RANGE_COUNT
};

/* By `enum activity_kind` and `enum range_kind`. */
extern const struct event_words activity_words[ACTIVITY_COUNT], range_words[RANGE_COUNT];

/* Whether it moves or sets memory: it has `bytes` and a `destination` then. */
static inline bool activity_is_transfer(const struct activity *activity)
{
	return activity->kind == ACTIVITY_COPY || activity->kind == ACTIVITY_SET;
}

struct range {
	enum range_kind kind;
	uint64_t begin_ns, end_ns;
	const char *name;         /* valid during event() only; never NULL */
	const char *domain;       /* the NVTX domain's name; NULL: none, or the default one */
	uint32_t depth;           /* RANGE_PUSHPOP: ranges around it in its thread and domain */
	uint64_t correlation;     /* RANGE_SYNC: of its call; 0: not known */
	uint32_t context, stream; /* RANGE_SYNC: as of activities; 0: none */
	uint32_t category;        /* NVTX: the program's own number; 0: none */
	uint32_t color; /* NVTX: alpha, red, green, blue, from the highest byte; 0: none */
};

/* ---- stalls: why instructions of kernels waited ------------------------------------------------
 *
 * Known only where they were asked for. In a window, one of many, instructions of what ran on a GPU
 * were sampled: of each, how many of its samples waited for a reason. Of the whole window an event
 * without a kernel tells all samples. Of one window there may be several of either, to be added up.
 */
#define STALL_ANYWHERE     UINT64_MAX   /* `offset`: of many instructions */
#define STALL_SAMPLES_MOST (1ull << 40) /* of one event: sums of millions of them have room */

struct stall {
	uint64_t begin_ns, end_ns;   /* of the window */
	const struct kernel *kernel; /* NULL: of the whole window */
	const char *reason; /* "long_scoreboard"; valid during event() only; NULL as above */
	uint64_t cubin;     /* its CRC, as CUPTI counts */
	uint64_t offset;    /* of the instruction, from the kernel's begin */
	uint64_t samples;
	uint64_t dropped, foreign; /* of the whole window: lost, of kernels that are not told of */
	uint64_t cost_ns;          /* of the whole window: what calls of CUPTI's took */
	const char *file;          /* of the source, as `reason`; NULL: not known */
	uint32_t line;             /* 0: not known */
};

enum event_type {
	EVENT_CALL,       /* a call that ended, or that will not be followed to its end */
	EVENT_CALL_BEGIN, /* only with --begin-end: outputs and result are not set yet */
	EVENT_PROCESS,    /* a process is traced from now on */
	EVENT_EXIT,       /* it ended */
	EVENT_THREAD,     /* before the first call of a thread: its name */
	EVENT_ACTIVITY,   /* something ran on the GPU and ended */
	EVENT_RANGE,      /* a range ended */
	EVENT_SAMPLE,     /* what a thread was doing at a moment, or while it was blocked */
	EVENT_METRICS,    /* how well a GPU was used; for consumers that ask for it */
	/* A call that is no CUDA call (LAYER_KERNEL, LAYER_HOOK) and ended. It stands in the time
	 * of its thread, so mostly within a CUDA call, which comes after it. */
	EVENT_OTHER_CALL,
	EVENT_STALL, /* why a kernel's instruction waited; for consumers that ask for it */
};

/*
 * Metrics are of a GPU, whoever used it. `process` is the first one that was traced, and means
 * nothing; `tid` is 0. They are known late, and in the order of their ends for each GPU.
 *
 * Activities and ranges are known late, when a buffer is full or was asked for. So they are in the
 * order of their ends among themselves, and come up to a few seconds after calls of the same time.
 * Sums and Xids of the driver come up to half a second after calls of the same time. All three may
 * come after their process has ended. Stalls come as late as their windows' ends, at once. All
 * other events are in order of time.
 */

struct event {
	enum event_type type;
	uint64_t time_ns; /* a call's end, or its entry where it has no end; of activities and */
			  /* ranges their end */
	const struct process *process;
	uint32_t tid;            /* as the initial pid namespace counts; 0: of no thread */
	const struct call *call; /* of the three events of calls; valid during event() only */
	const struct activity *activity;          /* EVENT_ACTIVITY; valid during event() only */
	const struct thread *thread;              /* EVENT_THREAD; valid during event() only */
	const struct range *range;                /* EVENT_RANGE; valid during event() only */
	const struct sample *sample;              /* EVENT_SAMPLE; valid during event() only */
	const struct gpu_metrics_sample *metrics; /* EVENT_METRICS; valid during event() only */
	const struct stall *stall;                /* EVENT_STALL; valid during event() only */
};

/* ---- what was missed ----------------------------------------------------------------------- */

enum lost_reason {
	LOST_RING_FULL,    /* the reader did not keep up */
	LOST_THREADS_FULL, /* more threads than the eBPF side has room for */
	LOST_NO_ENTRY,     /* a return whose entry was not seen: the call began before the trace */
	LOST_TOO_DEEP,   /* nested deeper than is followed: entry kept, return not; NVTX's ranges */
	LOST_UNREADABLE, /* a call whose arguments in memory could not be read: those are zero */
	LOST_LATE,       /* came after its place in time had been written: order only */
	LOST_GPU_RING,   /* GPU times: the agent's ring was full */
	LOST_GPU_BUFFERS,  /* CUPTI had no buffer for them */
	LOST_GPU_TIMES,    /* activities and ranges whose times were impossible, left out */
	LOST_RECORDS,      /* ring full, too: what told of processes, threads, names, mappings */
	LOST_TARGETS_FULL, /* processes that are not traced: the eBPF side has no room for more */
	LOST_TEXTS,        /* texts that were cut or could not be read; their calls are there */
	LOST_NOT_RUN,      /* the kernel left an eBPF program out, which was under way already */
	LOST_GPU_CALLS,    /* activities that are there, but the call that asked for them is not */
	LOST_GPU_RECORDS,  /* what an agent told and made no sense, left out */
	LOST_SUMS,         /* calls that no sum had room for: memleak, launches, bandwidth */
	LOST_NO_ANSWER,    /* reads of a target's memory or files that came to no end */
	LOST_OVER_BUDGET,  /* what a target told beyond the memory that is kept of it */
	LOST_GPU_UNRECORDED, /* launches whose work was not told of when their process ended */
	LOST_MOMENTS,        /* as LOST_NOT_RUN, but no call: samples, switches, interrupts */
	LOST_QUEUE,          /* calls that an agent told faster than they were taken over */
	LOST_COUNT,
};

const char *lost_reason_text(enum lost_reason reason);

/* A function that could not be hooked, or a thing that happened to the hooks; for the summary. */
struct miss {
	enum miss_kind {
		MISS_NOT_HOOKED,  /* name, lib, why */
		MISS_HOOKED_LATE, /* lib, process; why says how late */
		MISS_UNHOOKED,    /* by the governor; why says the cost. Process: its agent ended */
		MISS_ENTRY_ONLY,  /* no returns for this process or function; why */
		MISS_ESTIMATED,   /* measured in windows; why says which share of the time */
		MISS_GPU_TIMES,   /* no GPU times of this process, or not of all its time; why */
		MISS_NO_ANSWER,   /* process; its memory and files are not read any more; why */
		MISS_OVER_BUDGET, /* process; it told more than is kept; why says what */
		MISS_UNSEEN,      /* processes ended before their files could be looked into; why */
		MISS_COUNTED,     /* name, lib; calls were counted inside of processes, and not */
				  /* recorded one by one; calls says how many, why as well */
		MISS_FAILED,      /* the run ended by an error, or not all of it is written; why */
		MISS_GPU_WINDOWS, /* GPU times in windows; why says how much of the time: chosen,
		                     and no loss */
		MISS_STALLS,      /* no stall reasons of this process, or not all; why */
		MISS_NOT_LOOKED,  /* name; calls that nobody asked for, and that a table may be
		                     thought to have: no loss; why says which */
		MISS_LAST = MISS_NOT_LOOKED,
	} kind;
	const char *name;
	const char *lib;
	uint32_t pid; /* 0: all */
	const char *why;
	uint64_t processes; /* that it stands for; 0: it counts none */
	uint64_t calls;     /* of MISS_COUNTED: exactly, those within others as well */
};

/* A GPU of the machine, whichever process used it. 0 and "": not known. */
struct run_gpu {
	char name[96]; /* "NVIDIA H200" */
	char uuid[48]; /* "GPU-8c0d...", as nvidia-smi shows it */
	char bus[32];  /* "00000000:18:00.0" */
	uint64_t memory_bytes;
	uint64_t clock_hz;         /* the highest of its multiprocessors */
	uint64_t memory_bandwidth; /* bytes a second, by clock and width */
	uint32_t major, minor;     /* compute capability */
	uint32_t multiprocessors;
};

/* What is missing in stacks that were asked for; each is told in profiles. */
enum stacks_missed {
	STACKS_NO_WALK,     /* samples and calls that came where no stack could be walked */
	STACKS_LOST,        /* samples and calls whose stack was lost on its way */
	STACKS_PROCESSES,   /* processes that there was no room for */
	STACKS_FILES,       /* files whose unwind tables there was no room for */
	STACKS_PYTHON,      /* processes with a Python whose frames are not read */
	STACKS_PYTHON_LOST, /* frames of Python whose names could not be read */
	STACKS_NO_ROOM,     /* names and stacks that there was no room for */
	STACKS_TOO_FAST,    /* allocations that came faster than their stacks are walked */
	STACKS_LINES_LATE,  /* places whose lines were not looked up when nobody waited any more */
	STACKS_LINES_LOST,  /* places in files whose debug information could not be read */
	STACKS_MAPPINGS,    /* processes with more executable mappings than are kept */
	STACKS_WAKERS,      /* processes that targets wait for and that there was no room for */
	STACKS_NAMES_LATE,  /* frames of native code whose names take too long to find */
	STACKS_MISSED_COUNT
};

/* "names and stacks had no room": what stands behind its number, by which it is of one or more. */
const char *stacks_missed_text(enum stacks_missed missed, uint64_t n);

/* Calls whose stacks are asked for. */
enum stack_calls {
	STACK_CALLS_LAUNCHES = 1 << 0,    /* of kernels and graphs */
	STACK_CALLS_COPIES = 1 << 1,      /* and sets */
	STACK_CALLS_WAITS = 1 << 2,       /* calls that wait for the GPU, and copies that do */
	STACK_CALLS_ALLOCATIONS = 1 << 3, /* and frees */
	STACK_CALLS_ALL = (1 << 4) - 1,
	STACK_CALLS_HOOKS = 1 << 4, /* spans of hooks that users ask for; of no recording */
};
#define STACK_CALLS_WORK (STACK_CALLS_LAUNCHES | STACK_CALLS_COPIES)

/* Which stacks were asked for; all 0: none. */
struct run_stacks {
	uint64_t sample_ns; /* between two samples of a CPU; 0: none were taken */
	uint32_t calls;     /* enum stack_calls */
	uint32_t one_in;    /* of one launch or copy in so many, by chance; 0, 1: of each */
	uint64_t call_ns;   /* between two of a thread, on average; 0: as they come */
	uint64_t missed[STACKS_MISSED_COUNT]; /* known in end() */
	bool blocked;                         /* how long threads were blocked, and where */
	uint64_t blocked_ns;                  /* shorter stretches were added up */
	bool host_waits; /* what threads waited for, of at least blocked_ns as well */
};

/* How metrics of GPUs were taken; all 0: they were not. */
struct run_metrics {
	uint64_t interval_ns;      /* that was asked for */
	uint64_t gpm, utilization; /* samples by their source; these and the rest known in end() */
	uint64_t late;             /* moments that were missed: the next sample stands for them */
	uint64_t none;             /* readings that gave nothing */
	uint64_t dropped;          /* samples that there was no room for */
	uint64_t cpu_ns;           /* that reading took, of all threads */
};

/* How it was told when GPUs were busy, from outside of processes; all 0: it was not. */
struct run_stretches {
	uint64_t interval_ns;    /* between two samples: what is shorter is not told apart */
	uint64_t clock_error_ns; /* of their times */
	uint64_t samples, lost;  /* that were taken; times that some were lost */
	uint64_t dropped;        /* stretches that there was no room for */
	uint64_t cpu_ns;         /* that it took */
};

#define RUN_GPUS_MAX 64 /* in a file; GPUS_MAX of src/cuda is what is asked for */

/* What is known of who a process is. The numbers are in trace files: new ones come last. */
enum run_identity_word {
	RUN_IDENTITY_USER,
	RUN_IDENTITY_CONTAINER,
	RUN_IDENTITY_POD,
	RUN_IDENTITY_NAMESPACE,
	RUN_IDENTITY_JOB, /* these two: Slurm's */
	RUN_IDENTITY_STEP,
	RUN_IDENTITY_RANK,
	RUN_IDENTITY_LOCAL_RANK,
	RUN_IDENTITY_WORLD_SIZE,
	RUN_IDENTITY_COMMAND, /* its program, and an interpreter's script */
	RUN_IDENTITY_UNIT,    /* systemd's */
	RUN_IDENTITY_WORDS
};

#define RUN_IDENTITIES_MAX 1024

/* Memory that NVML told of: a moment's. */
struct run_memory {
	uint64_t time_ns, bytes;
};

/* The numbers are the order in files. */
enum run_memory_moment { RUN_MEMORY_FIRST, RUN_MEMORY_MOST, RUN_MEMORY_LAST, RUN_MEMORIES };

struct run_identity {
	uint32_t pid, machine; /* machine: see struct process; in memory only */
	uint64_t since_ns; /* the first of its events: a number can be another process's later */
	uint32_t own_word; /* bits of words that the process itself could have made up */
	uint32_t gpus; /* bits of the machine's GPUs that it used, as the driver tells it; 0: not
	                  known */
	bool memory_whole;                      /* it had none before it was traced */
	struct run_memory memory[RUN_MEMORIES]; /* time 0: NVML did not tell of it */
	char *words[RUN_IDENTITY_WORDS];        /* NULL: not known */
};

struct run_info;

/* Of the process with this number, or key, whose first event was then; NULL: nothing is known. */
const struct run_identity *run_identity_of(const struct run_info *run, uint64_t key,
                                           uint64_t begin_ns);

/* "user", "container", "pod", ...: as metrics of the node agent have them. */
const char *run_identity_name(enum run_identity_word word);

/* Frees its words. */
void run_identity_clear(struct run_identity *identity);

/* Of recordings of several machines that are read together. */
struct run_machine {
	const char *hostname;    /* NULL: not known */
	uint64_t clock_error_ns; /* by how much its times may be wrong by the clock of all, */
	uint64_t n_collectives;  /* which it was compared with by so many; 0: it is its own */
};

/* How a run went: filled by the source, read by consumers in end(). */
struct run_info {
	uint64_t begin_ns, end_ns;  /* of the trace */
	int64_t realtime_offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC at the begin */
	int64_t boottime_offset_ns; /* CLOCK_BOOTTIME minus it: how long the machine had slept */
	uint64_t lost[LOST_COUNT];
	const struct miss *misses;
	size_t n_misses;
	double estimate_scale; /* 1: all was seen; above: counts are multiplied by it */
	bool returns;          /* durations and results were recorded */
	const char *chosen;    /* options that left calls out: "--failed"; NULL: none did */
	const char *reason;    /* why a flight recorder wrote it: "error: ..."; NULL: none did */
	bool gpu_times;        /* were asked for; in end(): and at least one process had them */
	uint64_t gpu_clock_error_ns; /* of activities' times against calls'; 0: one clock */
	/* How often a command's thread waited while a file that it had mapped was looked into and
	 * hooked, and the longest of these. */
	uint64_t holds, longest_hold_ns;
	/* what tracing cost the busiest thread, of its own time: on average, in the worst 250 ms */
	double overhead_percent, overhead_most_percent;
	bool cut_short;   /* a trace file without its end: counts of losses are not known */
	bool end_damaged; /* its end is in a damaged part: neither are they; not with cut_short */
	uint64_t damaged_chunks; /* of a trace file, which were left out; known in end() */
	uint64_t damaged_events; /* in them, or of no use without them; as far as is known */
	uint64_t over_budget; /* of a trace file: definitions, and events that ask for a row, beyond
	                       */
	/* what is kept of one; the parts that they are in are damaged ones */
	bool too_dense; /* a trace file unpacks to more than is read of one of its size; what is */
			/* beyond are damaged parts */
	bool output_full; /* for a format's end(): of the rest of the trace nothing is written */
	/* where it was recorded; NULL: not known */
	const char *hostname, *kernel_release, *driver_version, *command;
	const char *boot;           /* the kernel's id of this boot, which no other machine has */
	const char *machine;        /* as `uname -m` has it: "x86_64" */
	uint32_t cpus;              /* CPUs that are online; 0: not known */
	uint64_t memory_bytes;      /* of the host; 0: not known */
	const struct run_gpu *gpus; /* in the order of their PCI buses; known in end() */
	size_t n_gpus;
	struct run_stacks stacks;
	struct run_metrics metrics;
	struct run_stretches stretches;
	const struct run_identity *identities; /* of processes, as they were met; known in end() */
	size_t n_identities;
	uint64_t identities_left_out; /* processes that there was no room for */
	const struct run_machine
		*machines; /* by struct process's; of one alone there may be none */
	size_t n_machines;
};

/* A count as it would be had all been seen; at most UINT64_MAX. */
uint64_t run_scaled(const struct run_info *run, uint64_t count);

/* ---- consumers ----------------------------------------------------------------------------- */

struct consumer {
	const struct consumer_ops *ops;
};

/*
 * All return 0 or a negative errno with `err` set; the source then stops and passes it on. Begin,
 * flush and end may be NULL: consumers_begin() and its like leave them out.
 */
struct consumer_ops {
	int (*begin)(struct consumer *self, const struct run_info *run, struct err *err);
	int (*event)(struct consumer *self, const struct event *event, struct err *err);
	int (*flush)(struct consumer *self, struct err *err); /* nothing new for now: show it */
	int (*end)(struct consumer *self, const struct run_info *run, struct err *err);
	void (*free)(struct consumer *self);
	bool metrics; /* wants EVENT_METRICS, which no other consumer is given */
	bool stalls;  /* the same of EVENT_STALL */
};

/* The call's own duration in ns, without what the agent took; 0 where the end is not known. */
static inline uint64_t call_duration_ns(const struct call *call)
{
	uint64_t ns = call->end_ns > call->begin_ns ? call->end_ns - call->begin_ns : 0;

	return ns > call->overhead_ns ? ns - call->overhead_ns : 0;
}

/* Of what ran on a GPU. A damaged trace can say that it ended before it began: 0 then. */
static inline uint64_t activity_duration_ns(const struct activity *activity)
{
	return activity->end_ns > activity->begin_ns ? activity->end_ns - activity->begin_ns : 0;
}

static inline uint64_t range_duration_ns(const struct range *range)
{
	return range->end_ns > range->begin_ns ? range->end_ns - range->begin_ns : 0;
}

/* Whether it counts as a call of CUDA's, and may be judged as one. */
static inline bool call_is_cuda(const struct call *call)
{
	return layer_is_cuda(call->function->layer);
}

/*
 * Whether it is one of the N of --max-events: a call of CUDA's that no other traced one made. Those
 * within it come along. Where functions are chosen by name, each that is chosen counts.
 */
static inline bool event_is_counted(const struct event *event, bool by_name)
{
	return event->type == EVENT_CALL && (by_name || !(event->call->flags & CALL_NESTED));
}

/* EVENT_CALL or EVENT_OTHER_CALL, as its function says. */
static inline enum event_type call_event_type(const struct call *call)
{
	return call_is_cuda(call) ? EVENT_CALL : EVENT_OTHER_CALL;
}

/* Kernels that a call launches: one, but on each of the devices of a cooperative launch. */
static inline uint64_t call_launches(const struct call *call)
{
	return call->args.launches ? call->args.launches : 1;
}

static inline bool call_has_end(const struct call *call)
{
	return !(call->flags & (CALL_NO_RETURN | CALL_UNFINISHED));
}

/* Whether it did what it is for, and is not the inner half of another that did. */
static inline bool call_counts(const struct call *call)
{
	return !(call->flags & (CALL_NESTED | CALL_UNFINISHED | CALL_CAPTURED | CALL_FAILED));
}

/* Consumers as a source sees them: a row of them, each given the same events. */

/* Each stops at the first consumer that fails and returns what it returned. */
int consumers_begin(struct consumer *const *consumers, size_t n, const struct run_info *run,
                    struct err *err);
int consumers_flush(struct consumer *const *consumers, size_t n, struct err *err);
static inline bool consumer_wants(const struct consumer *consumer, enum event_type type)
{
	return (type != EVENT_METRICS || consumer->ops->metrics) &&
	       (type != EVENT_STALL || consumer->ops->stalls);
}

static inline int consumers_event(struct consumer *const *consumers, size_t n,
                                  const struct event *event, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (consumer_wants(consumers[i], event->type))
			r = consumers[i]->ops->event(consumers[i], event, err);
	}
	return r;
}

/*
 * Every consumer gets its end, also after one has failed: the first failure is returned, and those
 * that come later are told of it by a miss, so that none says of a run that nothing is missing
 * where something could not be written. They keep no pointer to the run.
 */
int consumers_end(struct consumer *const *consumers, size_t n, const struct run_info *run,
                  struct err *err);

/* `told` is the run with such a miss; its misses, but not their words, are the caller's to free. */
void consumers_add_failure(struct run_info *told, const struct run_info *run, const char *why);

void consumer_free(struct consumer *consumer); /* nothing of NULL */
