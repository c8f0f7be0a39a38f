/* SPDX-License-Identifier: MIT */
/*
 * Programs with one planted problem each, all kinds in one program: planted KIND [--without]
 * [SECONDS]. A kind is a step that is done over and over; what is wrong with it is a function of
 * its own, which the table of kinds.py names. With --without the same runs without its problem.
 * At the end: "steps N step_us N", of the time after a first tenth.
 */
#ifndef PLANTED_H
#define PLANTED_H

#include "programs/sample.h"

#define PLANT  __attribute__((noinline, noclone, noipa))
#define HELPER static inline __attribute__((always_inline))

/* Milliseconds of a usual problem, and whether it is there at all. */
#define PROBLEM_MS 9

struct kind {
	const char *name;
	void (*prepare)(void); /* after the first steps; may be NULL */
	void (*step)(void);
};

extern const struct kind host_kinds[], worker_kinds[], gpu_kinds[], wait_kinds[], rank_kinds[],
	nccl_kinds[], cpp_kinds[], healthy_kinds[], held_out_kinds[], unseen_kinds[], unmet_kinds[],
	untold_kinds[];

/* Of kinds that are two processes, each on a GPU of its own; 0 of all others. */
extern int rank;
void ranks_begin(void);                 /* before CUDA begins */
bool ranks_go_on(long step, bool over); /* until both have done the same steps */
void ranks_end(void);

/* The same of kinds that are several programs with NCCL's collectives. */
void nccl_begin(char **argv);
void nccl_meet(void); /* after CUDA began */
bool nccl_go_on(long step, bool over);
void nccl_end(void);

extern bool with_problem;
extern CUstream stream; /* does not wait for the default stream */
extern CUcontext context;
extern CUfunction gemm, add, reduce;
extern const char *folder;  /* for files */
extern double compute_rate; /* rounds of compute_rounds() in a millisecond */
extern volatile double sink;

HELPER void compute_rounds(double rounds)
{
	for (double i = 0; i < rounds; i++)
		sink += i * 0.5;
}

/* So much of a CPU's time, in the function that calls. */
HELPER void compute(double ms)
{
	if (with_problem)
		compute_rounds(ms * compute_rate);
}

HELPER void compute_anyway(double ms)
{
	compute_rounds(ms * compute_rate);
}

void nap_ms(double ms);

HELPER void nap(double ms)
{
	if (with_problem)
		nap_ms(ms);
}

/* One launch that takes so long on the GPU. */
void launch(CUfunction function, double us, CUstream on);

/* One that leaves the rest of the GPU to others, for so many milliseconds. */
void launch_one_block(unsigned ms, CUstream on);

/* What a step has the GPU do: five kernels of 200 us; waits until the step before the last is done.
 */
void train_step(void);
void keep_two_steps(CUstream on); /* its wait alone, for steps of their own */
void mark_step(CUstream on);

/* A child of the program's that ends with it. */
pid_t child_begin(void); /* as fork */
void child_until_end(void (*work)(void));
void thread_begin(void *(*run)(void *));

void fail_if(bool failed, const char *what);

#endif
