/* SPDX-License-Identifier: MIT */
/*
 * Stacks of the trace model: what a thread was doing when it was sampled, or when it made a call.
 *
 * A stack is made once and pointed to by all who have it. Like processes and functions, stacks and
 * their frames belong to the source and live until the consumer's end() has returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which world a frame is of: what views colour, and what users fold away. */
enum frame_kind {
	FRAME_NATIVE,      /* compiled code that is none of the below */
	FRAME_PYTHON,      /* a function of Python, as the interpreter keeps it */
	FRAME_JIT,         /* code made at run time, named by /tmp/perf-PID.map or not at all */
	FRAME_CUDA,        /* libcuda, libcudart and NVIDIA's libraries on top of them */
	FRAME_KERNEL_MODE, /* Linux */
	FRAME_DRIVER,      /* nvidia.ko and its siblings */
	FRAME_GPU,         /* a kernel, copy or set that ran on a GPU for the stack below it */
	FRAME_COUNT
};

/* One function at one place. Inlined functions are frames of their own, with the same address. */
struct stack_frame {
	uint32_t id; /* dense, from 0 */
	enum frame_kind kind;
	bool inlined;         /* into the next outer frame */
	const char *function; /* as its author wrote it; NULL: not known */
	const char *module; /* base name of the file, "[vdso]", "nvidia"; NULL: nothing is mapped */
	const char *file;   /* the source file; NULL: not known */
	uint32_t line;      /* in it; 0: not known */
	uint32_t first_line; /* of the function; 0: not known */
	uint64_t offset;     /* of the place in the module's file, in bytes; 0 for Python */
	/* Of the module's file, in lower case hexadecimal; frames of one module share it. NULL: it
	 * has none, or is not known. */
	const char *build_id;
	/*
	 * What it is in its source, where that became known after the frame: functions that were
	 * inlined, the innermost first, and in the end the function itself. It can come at any
	 * time until end(), and does not change then. 0: the frame stands for itself.
	 */
	size_t n_parts;
	const struct stack_frame *const *parts;
};

/*
 * Frames that have up to 64 parts each make deep stacks, and a file chooses them: parts take the
 * place of frames from the outside on, and beyond this depth frames stay whole.
 */
#define STACK_PARTED_DEPTH 1024

/* How far a stack reaches. All but STACK_WHOLE are told in every output, with their share. */
enum stack_end {
	STACK_WHOLE,       /* to the begin of the program or of its thread */
	STACK_TOO_DEEP,    /* more frames than are kept */
	STACK_NO_MAPPING,  /* code at an address where nothing was known to be mapped */
	STACK_NO_TABLE,    /* a file without usable unwind tables, or not read yet */
	STACK_NO_RULE,     /* no rule for this place, or one of a kind that is not followed */
	STACK_UNREADABLE,  /* memory of the stack could not be read */
	STACK_BAD,         /* it led nowhere: a frame not above the one inside it */
	STACK_BY_POINTERS, /* to the begin, but by frame pointers where code has no unwind tables:
	                      some frames may be missing */
	STACK_END_COUNT
};

/* "unwind tables missing": half a line for the user; "" for STACK_WHOLE. */
const char *stack_end_text(enum stack_end end);

struct stack {
	uint32_t id; /* dense, from 0 */
	enum stack_end end;
	bool python_cut;                         /* frames of Python are missing in it */
	size_t n_frames;                         /* never 0 */
	const struct stack_frame *const *frames; /* innermost first */
};

enum sample_kind {
	SAMPLE_CPU,     /* the thread was on a CPU */
	SAMPLE_OFF_CPU, /* it was blocked; known when it went on */
	SAMPLE_KIND_COUNT
};

/*
 * Of SAMPLE_OFF_CPU. Up to BLOCKED_STILL it is one stretch of time that ends with the event. The
 * others are no such stretch, and have no stack.
 */
enum blocked {
	BLOCKED_UNKNOWN,   /* who woke the thread is not known */
	BLOCKED_WOKEN,     /* by a thread: `waker` */
	BLOCKED_INTERRUPT, /* by an interrupt: of a timer, a device, the network */
	BLOCKED_STILL,     /* it is still blocked, at the end */
	BLOCKED_BEFORE,    /* since before the begin; the part since then */
	BLOCKED_BRIEF,     /* the sum of `count` stretches that were too short to be told of */
	BLOCKED_SKIPPED,   /* the sum of `count` longer ones whose stacks were not walked */
	BLOCKED_PREEMPTED, /* it was not: it would have run on, but had no CPU; since 1.5 */
	BLOCKED_COUNT
};

/* "interrupt": the word for it in outputs. */
const char *blocked_name(enum blocked blocked);

/* What a thread waited for, as far as the kernel's state of it tells. */
enum wait_kind {
	WAIT_UNKNOWN, /* that was not recorded */
	WAIT_CPU,     /* it could run: others had the CPU */
	WAIT_DISK,    /* a file's data, or room for it */
	WAIT_NETWORK, /* a socket, of this machine too */
	WAIT_PIPE,
	WAIT_LOCK, /* a futex: another thread */
	WAIT_SLEEP,
	WAIT_FAULT,  /* a page of its memory that was not there */
	WAIT_SWAP,   /* the same, and it was swapped out; known by the stack */
	WAIT_DEVICE, /* a character device: a driver's, a terminal */
	WAIT_EVENTS, /* whichever of several files, an eventfd, a signal */
	WAIT_CHILD,
	WAIT_STOP, /* it was stopped: by a signal, a debugger */
	WAIT_CALL, /* in another system call */
	WAIT_COUNT
};

/* "disk": the word for it in outputs; NULL for WAIT_UNKNOWN. */
const char *wait_kind_name(enum wait_kind wait);

struct sample {
	enum sample_kind kind;
	uint64_t weight_ns;        /* how much time it stands for */
	const struct stack *stack; /* NULL: there was no room for it, or it was lost */
	/* of SAMPLE_OFF_CPU; else 0 */
	enum blocked blocked;
	uint32_t waker_tid; /* of BLOCKED_WOKEN, with its name; 0, NULL: not known */
	const char *waker;  /* valid during event() only */
	uint64_t count;     /* of stretches that it is the sum of */
	/* with --host-waits; else 0 */
	enum wait_kind wait;
	uint64_t runnable_ns; /* of weight_ns, at its end: nothing was waited for but a CPU */
	uint32_t rival_pid;   /* the process that ran there until then, with its thread's name; */
	const char *rival;    /* 0, NULL: none. Valid during event() only */
};

static inline bool sample_is_stretch(const struct sample *sample)
{
	return sample->kind == SAMPLE_OFF_CPU &&
	       (sample->blocked <= BLOCKED_STILL || sample->blocked == BLOCKED_PREEMPTED);
}

/* On a CPU at its time, or blocked until then: it can be laid over other times. */
static inline bool sample_is_placed(const struct sample *sample)
{
	return sample->kind == SAMPLE_CPU || sample_is_stretch(sample);
}

/* ---- stacks -------------------------------------------------------------------------------- */

/*
 * The stacks of a run, each kept once, and their frames as well: a source finds or makes what its
 * events point to. Memory has a bound, of which one owner may bring half; what there is no room for
 * is counted.
 *
 * Who goes on for months, and knows who holds his stacks, begins new ones now and then, has the
 * holders' moved to these (stacks_move), and frees the others with all that nobody held.
 */

/* 100,000 stacks of 60 frames, and as many frames. */
#define STACKS_BYTES_MAX ((size_t)128 << 20)

struct stacks;

struct stacks *stacks_new(size_t most_bytes);
void stacks_free(struct stacks *stacks);

/* Who brings what is kept from now on, a process by its number, and whose it is: a share is every
 * owner's, and every user's (budget.h). What others have brought is had for nothing. */
void stacks_for(struct stacks *stacks, uint32_t owner, uint64_t person);

/*
 * The one that equals `frame`, whose id is not looked at; its strings are copied where it is new.
 * It lives as long as the stacks. NULL where there is no room.
 */
const struct stack_frame *stacks_frame(struct stacks *stacks, const struct stack_frame *frame);

/* The same of a whole stack, of frames of these stacks. */
const struct stack *stacks_stack(struct stacks *stacks, const struct stack *stack);

/* What it is in its source (stack.h): once, of frames of these stacks. False: there is no room. */
bool stacks_set_parts(struct stacks *stacks, const struct stack_frame *frame,
                      const struct stack_frame *const *parts, size_t n);

/*
 * The stack here that equals one of others, which are freed next: it goes on the account of whom
 * stacks_for() says, with frames that were not moved before, but without their parts. Asked again
 * for one that was moved, it is the same. NULL where there is no room.
 */
const struct stack *stacks_move(struct stacks *stacks, const struct stack *stack);

/* Whether to begin new ones; these are, and all were moved that are held (budget.h). */
bool stacks_are_worn(const struct stacks *stacks);
void stacks_as_new(struct stacks *stacks);

size_t stacks_count(const struct stacks *stacks);
uint64_t stacks_refused(const struct stacks *stacks); /* frames and stacks without room */
