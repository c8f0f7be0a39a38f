/* SPDX-License-Identifier: MIT */
/*
 * What the programs that integration tests trace have in common: they make CUDA calls, count what
 * they did, and say so, so that a test can compare a trace with the truth.
 *
 * CALL(function, args...) makes a call and counts it, with its result if that is an error; MUST
 * does the same and ends the program when the call fails. The prototype comes from simcuda's
 * headers; the function is looked up in libcuda.so.1 or libcudart.so.13 (SAMPLE_CUDART) when it is
 * first called, or linked, where SAMPLE_LINKED is defined.
 *
 * sample_finish() appends one line of JSON to the file that SAMPLE_COUNTS names; each process of a
 * program that has several writes its own:
 *
 *   {"program":"threads","pid":7,"ppid":6,"threads":4,
 *    "calls":{"cuMemAlloc_v2":3},                calls made, by function, those that failed too
 *    "errors":{"cuMemAlloc_v2":{"2":1}},         results that were not 0, by function and code
 *    "unfinished":{"cuSimCallback":1},           calls that never returned
 *    "launches":{"_Z9vectorAddPKfS0_Pfi":5},     kernels that were launched and ran
 *    "captured":{"_Z9vectorAddPKfS0_Pfi":2},     launches that a capture recorded instead
 *    "bytes":{"alloc":4096,"free":0,"h2d":4096}, successful allocations, copies and sets
 *    "alloc_bytes":{"device":4096,"host":0},     allocations by kind of memory
 *    "call_bytes":{"cuMemAlloc_v2":4096},        the same bytes by function
 *    "live":{"count":1,"bytes":4096,"peak":4096},
 *    "numbers":{"graph_launches":2}}             what else a program has to say
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../simcuda/driver_api.h"
#include "../simcuda/runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum group {
	CALLS,
	UNFINISHED,
	LAUNCHES,
	CAPTURED,
	BYTES,
	ALLOC_BYTES,
	CALL_BYTES,
	NUMBERS,
	GROUPS,
};

struct counter;

/* The counter of that name; it lives as long as the program. */
struct counter *counter_get(enum group group, const char *name);
void counter_add(struct counter *counter, uint64_t n);
void count(enum group group, const char *name, uint64_t n);

/* One call made; its result if it came back. Returns the result. */
int call_ended(const char *function, int result);

/* Allocations: `kind` is a word of ALLOC_BYTES. A free of what is not live counts no bytes. */
void count_alloc(const char *function, const char *kind, uint64_t address, uint64_t bytes);
void count_free(uint64_t address);
/* Copies and sets: `direction` is "h2d", "d2h", "d2d", "h2h", "p2p", "default" or "set". */
void count_bytes(const char *function, const char *direction, uint64_t bytes);
void count_thread(void);

/* Begins the counting anew: in the child of a fork. */
void sample_forget(void);
void sample_finish(void);

/* Prints to stderr and ends the program with status 1, without writing counts. */
void sample_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A function of libcuda or libcudart, by the beginning of its name; ends the program where there is
 */
/* none. */
void *sample_symbol(const char *name);

#ifdef SAMPLE_LINKED
#define SAMPLE_FUNCTION(function) (&function)
#else
#define SAMPLE_FUNCTION(function) ((__typeof__(&function))sample_symbol(#function))
#endif

/* Threads that come here at once set the statics to the same values. */
#define SAMPLE_CALL(function)                                                                      \
	static __typeof__(&function) sample_found;                                                 \
	static struct counter *sample_counter;                                                     \
	if (!__atomic_load_n(&sample_counter, __ATOMIC_ACQUIRE)) {                                 \
		__atomic_store_n(&sample_found, SAMPLE_FUNCTION(function), __ATOMIC_RELAXED);      \
		__atomic_store_n(&sample_counter, counter_get(CALLS, #function),                   \
				 __ATOMIC_RELEASE);                                                \
	}                                                                                          \
	counter_add(__atomic_load_n(&sample_counter, __ATOMIC_RELAXED), 1);                        \
	__typeof__(&function) sample_call = __atomic_load_n(&sample_found, __ATOMIC_RELAXED)

#define CALL(function, ...)                                                                        \
	__extension__({                                                                            \
		SAMPLE_CALL(function);                                                             \
		int sample_result = (int)sample_call(__VA_ARGS__);                                 \
		sample_result ? call_ended(#function, sample_result) : 0;                          \
	})

/* A call that returns no result code. */
#define CALL_PLAIN(function, ...)                                                                  \
	__extension__({                                                                            \
		SAMPLE_CALL(function);                                                             \
		sample_call(__VA_ARGS__);                                                          \
	})

#define MUST(function, ...)                                                                        \
	do {                                                                                       \
		int must_result = CALL(function, __VA_ARGS__);                                     \
		if (must_result)                                                                   \
			sample_die("%s: %d", #function, must_result);                              \
	} while (0)

#ifdef __cplusplus
}
#endif

#endif
