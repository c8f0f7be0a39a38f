/* SPDX-License-Identifier: MIT */
/*
 * A recording in sorted columns, read once: what each thread did, what each GPU ran. All that asks
 * why time went where it did asks these.
 *
 * Numbers of threads and times are the recording's: a damaged or hostile one can have any. Rows are
 * put in order once and found by bisection; what ends before it begins has no length.
 */
#pragma once

#include "account/chains.h"
#include "analysis/collectives.h"
#include "base/spill.h"
#include "trace/event.h"

#define FACTS_NONE UINT32_MAX /* no such thread, no such row */

/* Below, the time of a copy is that of asking for it: at 25 GB/s 64 KiB take 2.6 us. */
#define FACTS_SMALL_COPY (64 << 10)

/* GPUs that compute have more than twice as many multiprocessors. */
#define FACTS_FEW_BLOCKS 16

/* Between calls so close to each other a thread does nothing but ask for work, or wait once. */
#define FACTS_SHORT_PAUSE_NS 200000

/* A call of CUDA's that no other one made. */
struct fact_call {
	uint64_t begin_ns, end_ns; /* the end of the recording where it did not return */
	const struct function *function;
	uint64_t correlation; /* 0: nothing on a GPU can name it */
	uint32_t chain;       /* of its stack; 0: not known */
	uint8_t op;           /* enum api_op */
	bool blocking : 1;    /* a copy or set that returns when it is done */
	bool waits_all : 1;   /* it returns when all that was asked for before is done */
	bool to_host : 1;     /* a copy from a GPU to the host, of FACTS_SMALL_COPY or more */
	bool waited : 1;      /* a copy that is waited for at once, and the wait for it */
	bool awaited : 1;     /* between two waits for the GPU that have little between them */
	bool worked : 1;      /* something that it asked for ran, and was recorded: */
	bool pageable : 1;    /* a copy from memory of the host that is not pinned */
	uint8_t small; /* a copy from or to a GPU of less than FACTS_SMALL_COPY, and the wait for
	                  it: its direction and 1; 0: none */
	bool open : 1; /* it had not returned at the end, or never did */
	bool by_sample : 1; /* its chain is that of a sample in it or a little before, or of a call
	                       that is alike: facts_alike() */
	bool by_sample_before : 1; /* of one before */
	uint32_t kernel;           /* its id and 1; 0: none */
	uint32_t stream;           /* tells it from others, mostly */
};

/* A thread was on a CPU. */
struct fact_sample {
	uint64_t time_ns;
	uint32_t chain;
	bool fault;  /* the kernel handed it a page of memory */
	bool copies; /* memory, at a place where the GPU's is copied */
	bool compiles;
	bool in_cuda; /* in a call of CUDA's, recorded or not, but none that polls */
};

/* It could not go on: from begin to ready for a reason, from there to the end for want of a CPU. */
struct fact_rest {
	uint64_t begin_ns, ready_ns, end_ns;
	uint32_t chain;
	uint32_t waker;     /* thread that ended it: a row; FACTS_NONE: not known, or no thread */
	uint32_t waker_tid; /* the same as the kernel has it; 0: none, or an interrupt */
	uint32_t rival_pid; /* the process that had the CPU meanwhile; 0: not known */
	uint8_t wait;       /* enum wait_kind */
	uint8_t how;        /* enum blocked */
	bool gil;           /* it waited for Python's lock of its interpreter */
	bool for_gpu;       /* it waited for a thread that was told the GPU's end */
	bool for_cuda;      /* in a function of the host's that CUDA had called */
	char rival[16];     /* its name */
};

/* Waits that were told together, and not by themselves: since the sum before. */
struct fact_sum {
	uint64_t end_ns;
	uint64_t blocked_ns,
		ready_ns;   /* ready: without a CPU, as threads that were preempted are */
	uint64_t untold_ns; /* of the time that it is of, what they can be in */
};

struct fact_thread {
	const struct process *process;
	uint32_t tid;
	char comm[16];
	uint64_t first_ns, last_ns; /* of what is known of it */
	struct fact_call *calls;
	struct fact_sample *samples;
	struct fact_rest *rests;
	struct fact_sum *sums;
	size_t n_calls, n_samples, n_rests, n_sums;
	bool of_cuda;             /* one of CUDA's */
	bool is_cudas;            /* that runs functions of the host */
	uint64_t polls;           /* samples in which it asked whether the GPU is done; */
	uint32_t poll_chain;      /* where it did last */
	uint64_t last_stream;     /* of its last call */
	uint64_t awaits, awaited; /* waits that are near to each other, what it asks between */
	uint64_t asks;            /* calls that GPUs ran something for, or launches */
	uint64_t unworked_ns; /* its first ask after the last that something is known to have run
	                         for; UINT64_MAX: none */
	struct fact_near {
		size_t call, rest, sample, sum;
	} near; /* what was asked for last: the next is mostly not far from it */
};

enum fact_class { FACT_KERNEL, FACT_COMMUNICATION, FACT_COPY, FACT_CLASSES };

/* Something that a GPU ran. */
struct fact_work {
	uint64_t begin_ns, end_ns;
	const struct process *process;
	union {
		uint64_t correlation; /* until facts_end(): then it is known */
		struct {
			uint32_t thread, call; /* that asked for it; FACTS_NONE: not known */
		};
	};
	uint32_t gpu;            /* a dense number of the process's device; */
	uint32_t device, stream; /* the process's own ones */
	uint32_t kernel;         /* its id and 1; 0: none, or not known */
	uint32_t chain;          /* where it was captured, as a node; 0: not known, or no node */
	uint8_t class;           /* enum fact_class */
	uint8_t kind;            /* enum activity_kind */
	uint8_t direction;
	bool sampled;  /* a stretch in which the GPU was busy: facts_busy_make_works() */
	bool pageable; /* a copy from or to memory of the host that is not pinned */
	bool few;      /* a kernel of so few blocks that most of the GPU is left to others */
};

struct fact_span { /* in which nothing of a process was measured */
	uint64_t begin_ns, end_ns;
	uint32_t process; /* its id */
};

struct fact_talk { /* a kernel of communication, and which collective it is of */
	uint32_t work, collective;
};

struct fact_range { /* of NVTX, pushed and popped */
	uint64_t begin_ns, end_ns;
	uint32_t thread, depth, name;
	unsigned likely; /* see steps_name() */
};

struct facts {
	const struct run_info *run; /* of the source's end */
	struct spill *spill;        /* has the rows of threads, works, ranges */
	struct gpu_time **gpus;     /* see gpu_times_of() */
	struct chains *chains;
	struct fact_thread *threads;
	size_t n_threads;
	struct fact_work *works; /* by GPU, then by begin */
	size_t n_works;
	uint32_t n_gpus;
	uint32_t *contexts;            /* of the first work of each */
	const struct kernel **kernels; /* that GPUs ran, by their ids */
	struct fact_range *ranges;     /* by begin */
	size_t n_ranges;
	struct fact_span *unmeasured; /* between windows of --gpu-window: by process and begin */
	struct fact_span *unwatched;  /* the same, and when threads were not watched any more */
	size_t n_unmeasured, n_unwatched;
	const struct stack **stacks; /* by id, for what makes chains of them; in the end not kept */
	size_t n_stacks;
	struct collectives collectives;
	struct fact_talk *talks;       /* by work; */
	size_t n_talks, n_talks_alone; /* alone: kernels of communication that are of none */
	uint32_t *call_works;   /* of each call of a collective its work; NULL: none has one */
	struct fact_busy *busy; /* when GPUs were, where that is told from outside */
	size_t n_busy;
	uint32_t gpus_busy;     /* how many of them were */
	uint64_t resolution_ns; /* of works that were made of it: 0 of those that were recorded */
	uint64_t sampled_ns;    /* up to where it is told */
	struct fact_pid *pids;  /* all threads, by their processes' numbers */
	size_t n_pids;
	uint64_t begin_ns, end_ns; /* of the recording, or of what is read of it */
	uint64_t from_ns,
		to_ns;     /* what is read, after the begin; to 0: to its end. Set by the user */
	uint64_t left_out; /* events that there was no room for */
	/* Of files that were read together a bit for each: those that have processes, and work of
	 * GPUs, samples and stretches of blocked time of such. */
	uint32_t files, files_works, files_samples, files_rests;
	struct facts_own *own;
};

static inline const char *fact_thread_name(const struct fact_thread *thread)
{
	return thread->comm[0] ? thread->comm : thread->process->comm;
}

/* No time of a recording is later, or ever was: what is added up of them has room. */
#define FACTS_TIME_MAX (1ull << 61)

static inline uint64_t facts_time(uint64_t ns)
{
	return ns < FACTS_TIME_MAX ? ns : FACTS_TIME_MAX;
}

static inline uint64_t facts_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t facts_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * The first of n rows in order whose time, `first` of the first one, is later; n: none. It is
 * looked for around *near, where it was found before.
 */
size_t facts_later(const uint64_t *first, size_t row_bytes, size_t n, uint64_t time_ns,
                   size_t *near);

/*
 * Of rows; what is beyond is counted in left_out. A recording of so many bytes has more, as far as
 * there is a file for them: events of 2 bytes have rows of 48 or 56.
 */
#define FACTS_BYTES (768ull << 20)
void facts_expect(uint64_t file_bytes); /* of all that is read from then on */

void facts_init(struct facts *facts);
void facts_clear(struct facts *facts);

/* What accounts of them do not need any more goes: rows of calls, work, samples and ranges. */
void facts_forget(struct facts *facts);

/* All events of a recording in their order; then once its end. */
void facts_event(struct facts *facts, const struct event *event);
void facts_end(struct facts *facts, const struct run_info *run);

/* The call that asked for it, and its thread; NULL: not known. */
const struct fact_call *facts_call_of(const struct facts *facts, const struct fact_work *work,
                                      uint32_t *thread);

/* The first of the thread that ends later than this; n_calls, n_rests, n_sums: none. */
size_t facts_call_at(struct fact_thread *thread, uint64_t time_ns);
size_t facts_rest_at(struct fact_thread *thread, uint64_t time_ns);
size_t facts_sum_at(struct fact_thread *thread, uint64_t time_ns);
/* The first at this time or later. */
size_t facts_sample_at(struct fact_thread *thread, uint64_t time_ns);

/*
 * The thread of the process with this number (machine_pid()) that was not at rest at that time, of
 * several the one that ran most of all; FACTS_NONE: none, or none that ran at all. Of processes
 * with very many threads not all are asked.
 */
uint32_t facts_running(const struct facts *facts, uint64_t pid, uint64_t time_ns,
                       uint32_t but_thread);

/* The thread that ran a function of the host for CUDA at that time, on a CPU or not; FACTS_NONE:
 * not known. */
uint32_t facts_host_function(const struct facts *facts, const struct process *process,
                             uint64_t time_ns);

/* The lowest number of a process of the recording that is above this one; 0: there is none. */
uint64_t facts_pid_after(const struct facts *facts, uint64_t pid);

/* From the call before to this one. */
static inline bool facts_pause_is_short(const struct fact_thread *thread, size_t call)
{
	return call &&
	       thread->calls[call].begin_ns - thread->calls[call - 1].end_ns < FACTS_SHORT_PAUSE_NS;
}

/* It put functions of the host on streams. */
bool facts_has_host_functions(const struct facts *facts, const struct process *process);

/* The process ended within the recording. */
bool facts_ended(const struct facts *facts, const struct process *process);
