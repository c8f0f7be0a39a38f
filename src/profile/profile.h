/* SPDX-License-Identifier: MIT */
/*
 * A profile: stacks, and the time that was spent in them on CPUs, on GPUs, blocked, and in
 * functions that users hook.
 *
 *     profile = profile_new(NULL);
 *     profile_add(profile, &(struct profile_sample){ .kind = WEIGHT_CPU, .ns = 10101010,
 *                                                    .stack = sample->stack });
 *     profile_gpu_name(activity, &name);
 *     profile_add(profile, &(struct profile_sample){ .kind = WEIGHT_GPU, .ns = 41000,
 *                                                    .stack = launch_stack, .gpu = name.data });
 *     profile_write(profile, &info, PROFILE_SVG, out, err);     profile_write.h
 *
 * All weights are nanoseconds, so those of CPUs and GPUs can stand in one graph.
 *
 * Stacks that are equal are one, whichever process they are of, unless processes or threads are
 * asked for. Frames and names are copied. Memory is bounded: a stack that there is no room for is
 * counted, with its weight, under a frame "[stacks not kept]", which every output shows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/event.h"
#include "trace/stack.h"

/* What time was spent on. */
enum weight_kind { WEIGHT_CPU, WEIGHT_OFF_CPU, WEIGHT_GPU, WEIGHT_HOOK, WEIGHT_KINDS };

#define WEIGHTS_ALL ((1u << WEIGHT_KINDS) - 1) /* bits 1 << kind */

#define PROFILE_HOOK  "[hook]"  /* what names of WEIGHT_HOOK begin with */
#define PROFILE_STALL "[stall]" /* before why a kernel waited */

#define PROFILE_BYTES ((size_t)64 << 20)

struct profile_options {
	bool per_process, per_thread; /* the second means the first as well */
	bool functions;               /* frames of Python are not told apart by their lines */
	bool interpreter;  /* of trees: frames of what runs functions of Python are in them, too */
	size_t bytes_most; /* 0: PROFILE_BYTES */
};

struct profile;

/* `options` may be NULL. */
struct profile *profile_new(const struct profile_options *options);
void profile_free(struct profile *profile);

struct profile_sample {
	enum weight_kind kind;
	uint64_t ns;
	uint64_t count; /* of samples, or of GPU activities, that it stands for; 0: one */
	/*
	 * NULL: not known; such time stands under "[stack not known]". A profile remembers the
	 * pointer: a stack must not change while samples come, nor its memory be another's.
	 */
	const struct stack *stack;
	/* What ran, of WEIGHT_GPU: see profile_gpu_name(). Of WEIGHT_HOOK
	 * "[hook]nccl.ncclAllReduce". */
	const char *gpu;
	const char *stall; /* why it waited, "[stall]waits for memory"; NULL: not known */
	/*
	 * Of WEIGHT_OFF_CPU: see profile_blocked_name(). Without a stack it stands for a sum of
	 * times, and is no stack that is missing.
	 */
	const char *blocked;
	/* Read only where the profile is per process or thread; NULL, 0: not known. */
	const struct process *process;
	uint32_t tid;
	const char *thread; /* its name */
};

void profile_add(struct profile *profile, const struct profile_sample *sample);

/*
 * Replaces what is in `name` by the frame that stands for it: "[GPU_Kernel]vectorAdd(float*)",
 * "[GPU_Copy]HtoD", "[GPU_Set]Device", "[GPU_Graph]graph".
 */
void profile_gpu_name(const struct activity *activity, struct buf *name);

/*
 * Replaces what is in `name` by the frame that says how a blocked thread went on, "[woken by
 * loader]", or of what it is the sum: "[shorter than 100 us]". NULL where there is nothing to say.
 * `brief_ns`: what was too short.
 */
const char *profile_blocked_name(const struct sample *sample, uint64_t brief_ns, bool per_thread,
                                 struct buf *name);

/*
 * Frames whose source became known after they were added (stack.h) are replaced by what they are.
 * When all samples were added, while the stacks are there.
 */
void profile_take_parts(struct profile *profile);

struct profile_sums {
	uint64_t ns[WEIGHT_KINDS];
	uint64_t count[WEIGHT_KINDS];
};

/* Of all that was added, kept or not. */
void profile_total(const struct profile *profile, struct profile_sums *sums);

/* For tests: the sums of what had no room; samples without a stack; stacks that differ; memory. */
void profile_not_kept(const struct profile *profile, struct profile_sums *sums);
uint64_t profile_without_stack(const struct profile *profile);
size_t profile_stacks(const struct profile *profile);
size_t profile_bytes(const struct profile *profile);

/*
 * How whole it is, in a line: "98.2 % of 10000 stacks whole; 1.1 % end in a file without unwind
 * tables (mostly libfoo.so)". Names in it are as they are in the profile: see text.h.
 */
void profile_completeness(const struct profile *profile, struct buf *out);
