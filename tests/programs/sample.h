/* SPDX-License-Identifier: MIT */
/*
 * What the programs of this folder share: CUDA found with dlopen and dlsym, and a count of all that
 * was done, which sample_end() appends to the file named by SAMPLE_COUNTS as one line of JSON:
 *
 *   {"pid": 12, "calls": {"cuInit": 1, ...}, "launches": {"tick() 1,1,1 32,1,1 0 0x0 12": 3}, ...}
 *
 * Each key is what the tests put together from a traced call, so that comparing is comparing keys
 * and numbers. A program counts a call before it makes it, and work once it was accepted.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __cplusplus
#define _Static_assert static_assert
#endif
#include "simcuda/driver_api.h"
#include "simcuda/runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- counting ------------------------------------------------------------------------------ */

struct tally;

/* The counter of `key` in `section` of the JSON object; made at first use, never freed. */
struct tally *tally_find(const char *section, const char *key);
void tally_add(struct tally *tally, long n);

/* tally_find and tally_add in one, the key formatted. */
__attribute__((format(printf, 3, 4))) void count(const char *section, long n, const char *key, ...);

/* For the child of a fork, which has done nothing yet. */
void tally_forget(void);

/* Writes the counts of this process; returns the exit status of a program that went well. */
int sample_end(void);

/* Ends the program with a message and a status that no test expects. */
__attribute__((format(printf, 1, 2), noreturn)) void sample_fail(const char *text, ...);

struct shape {
	unsigned grid[3], block[3], shared;
};

/* `section`: launches, or captured_launches. The kernel's name is demangled. */
void count_launches(const char *section, long n, const char *kernel, struct shape shape,
                    const void *stream);
/* `way` is sync or async. */
void count_copies(long n, const char *direction, size_t bytes, const char *way);
void count_sets(long n, size_t bytes);
/* Kinds are those of docs/jsonl.md. `frees` and `live` follow from count_free. */
/*
 * What the device is to have run, in the section activities: "kernel tick() 1,1,1 32,1,1",
 * "copy H2D 4096 pageable device", "set 4096 device", "run" of a graph. Memory is named as CUPTI
 * does; `from` and `to` are of pageable, pinned, device, managed.
 */
void count_ran_kernels(long n, const char *kernel, struct shape shape);
void count_ran_copies(long n, const char *direction, size_t bytes, const char *from,
                      const char *to);
void count_ran_sets(long n, size_t bytes, const char *memory);
void count_alloc(const char *kind, size_t bytes);
void count_free(const char *kind, size_t bytes);

/* ---- calling ------------------------------------------------------------------------------- */

/* The library that driver functions are looked up in: libcuda.so.1, or what sample_load named. */
extern void *driver, *runtime;

/* Opens a library late; ends the program when there is none. */
void *sample_open(const char *path);
void *sample_symbol(void *library, const char *name);

/* Counts and makes a call; its value is the call's. `library` is NULL for functions linked in. */
#define CALL_IN(library, name, ...)                                                                \
	({                                                                                         \
		static struct tally *call_tally;                                                   \
		static __typeof__(&name) call_function;                                            \
		if (!call_tally || !call_function) {                                               \
			call_function = (__typeof__(&name))sample_symbol(library, #name);          \
			call_tally = tally_find("calls", #name);                                   \
		}                                                                                  \
		tally_add(call_tally, 1);                                                          \
		call_function(__VA_ARGS__);                                                        \
	})

#define LINKED(name, ...)                                                                          \
	({                                                                                         \
		static struct tally *call_tally;                                                   \
		if (!call_tally)                                                                   \
			call_tally = tally_find("calls", #name);                                   \
		tally_add(call_tally, 1);                                                          \
		name(__VA_ARGS__);                                                                 \
	})

/* A call that must return `code`; one that fails is counted with the name that it must show. */
void sample_check(const char *call, int result, int code, const char *error);

#define DRIVER(name, ...)  sample_check(#name, (int)CALL_IN(driver, name, ##__VA_ARGS__), 0, NULL)
#define RUNTIME(name, ...) sample_check(#name, (int)CALL_IN(runtime, name, ##__VA_ARGS__), 0, NULL)
#define DRIVER_FAILS(code, name, ...)                                                              \
	sample_check(#name, (int)CALL_IN(driver, name, ##__VA_ARGS__), code, #code)
#define RUNTIME_FAILS(code, name, ...)                                                             \
	sample_check(#name, (int)CALL_IN(runtime, name, ##__VA_ARGS__), code, #code)

/* ---- a context, and kernels ------------------------------------------------------------------ */

/* Until there is a file that SAMPLE_WAIT names, once; sample_context() does that. */
void sample_wait(void);

#define TICK       "_Z4tickv"
#define TICK_NAME  "tick()"
#define BLOCK      "_ZN6shapes5blockIfLi4EEEvPT_i"
#define BLOCK_NAME "void shapes::block<float, 4>(float*, int)"
#define PLAIN      "plain_name"

extern const char sample_ptx[];

struct kernels {
	CUmodule module;
	CUfunction tick, block, plain;
};

/* Opens libcuda.so.1 unless `driver` is set, initialises it and makes a context current. */
CUcontext sample_context(void);
void sample_kernels(struct kernels *kernels);

/* One launch of a kernel without arguments that matter, counted. */
void sample_launch(CUfunction kernel, const char *name, struct shape shape, CUstream stream);

/* The same, and what the device is to run for it. */
void sample_run(CUfunction kernel, const char *name, struct shape shape, CUstream stream);

/* ---- threads, time, arguments ------------------------------------------------------------- */

long sample_tid(void);
double sample_seconds(void);

/* Prints "ready", for tests that wait for it. */
void sample_ready(void);
/* Waits up to that long; whether standard input has ended. */
bool sample_input_ended(int milliseconds);

/* The nth argument as a number, or `otherwise`. */
long sample_number(int argc, char **argv, int n, long otherwise);

#ifdef __cplusplus
}
#endif

#endif
