/* SPDX-License-Identifier: MIT */
/*
 * What each GPU did, one after the other: kernels before kernels that communicate before copies,
 * else nothing; of kernels one that fills the GPU before one of few blocks.
 */
#pragma once

#include "account/facts.h"

enum gpu_state { STATE_KERNELS, STATE_COMMUNICATION, STATE_COPIES, STATE_IDLE };

struct gpu_segment {
	uint64_t begin_ns, end_ns;
	uint32_t work;      /* that ran; STATE_IDLE: that ended it. n_works: none */
	uint32_t state : 2; /* enum gpu_state */
	uint32_t debt : 30; /* of STATE_IDLE its debt and 1: waits.h; 0: none */
};

/* It communicates, whatever it runs beside that. */
struct gpu_talk {
	uint64_t begin_ns, end_ns;
};

/* It runs nothing but kernels that communicate, and copies. */
struct gpu_alone {
	uint64_t begin_ns, end_ns;
	uint64_t before_ns; /* of all such until then */
};

struct gpu_time {
	struct gpu_segment *segments;
	size_t n;
	size_t first, last; /* its works */
	struct gpu_talk *talks;
	size_t n_talks;
	struct gpu_alone *alone;
	size_t n_alone;
	size_t near, near_talk, near_alone; /* see facts_later() */
	struct gpu_debt *debts;
	size_t n_debts;
};

/* By the facts' numbers of GPUs; of one that ran nothing n is 0. Without holes from the first work
 * to the last, or, where its process did not end, to the end of the recording. */
struct gpu_time *gpu_times_new(const struct facts *facts);

/* The same, made when it is first asked for; the facts', until they are forgotten. */
struct gpu_time *gpu_times_of(const struct facts *facts);
void gpu_times_free(struct gpu_time *gpus, const struct facts *facts);

/* How long the stream ran something that had most to run, in all. */
double gpu_longest_stream_ns(const struct facts *facts, const struct gpu_time *gpu);

/* The segment that a time is in: the first that ends later; n: none. */
size_t gpu_time_at(struct gpu_time *gpu, uint64_t time_ns);

/* The one that it is in then, or the next; NULL: none. */
const struct gpu_talk *gpu_time_talk(struct gpu_time *gpu, uint64_t time_ns);

/* How long of a stretch it runs nothing but what communicates. */
uint64_t gpu_time_alone_ns(struct gpu_time *gpu, uint64_t begin_ns, uint64_t end_ns);

/*
 * Stretches of a process's time in the parts that were measured. The caller sets end_ns to the
 * stretch's begin; stretches come in order.
 */
struct measured {
	uint64_t begin_ns, end_ns;
	uint64_t not_measured_ns;        /* of all so far */
	const struct fact_span *at, *to; /* that were not, the next and behind the last */
};

struct measured measured_of(const struct facts *facts, const struct process *process);

/* Those in which what GPUs ran was recorded, whether its threads were watched or not. */
struct measured measured_of_gpu(const struct facts *facts, const struct process *process);

/* False: there is no other before the stretch's end. */
bool measured_next(struct measured *part, uint64_t end_ns);

/* How long of the measured time these classes ran, no others: by 1 << enum fact_class. The time in
 * which none did is not told. */
void gpu_time_by_classes(const struct facts *facts, const struct gpu_time *gpu,
                         uint64_t ns[1 << FACT_CLASSES]);
