/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the simulated libcupti share: the driver and the libcupti that CUPTI names
 * ("libcupti.so.13" without it), a context, kernels, and a program that collects what it is told.
 */
#ifndef SIMCUDA_TEST_CUPTI_SCENE_H
#define SIMCUDA_TEST_CUPTI_SCENE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "../cupti/records.h"
#include "../driver_api.h"
#include "../profiler.h"

#define TICK "_Z4tickv"

typedef struct subscriber *handle;
typedef void (*callback)(void *user, uint32_t domain, uint32_t site, const void *data);
typedef void (*requested)(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void (*completed)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                          size_t valid);

#define CUPTI_FUNCTIONS(X)                                                                         \
	X(cuptiGetVersion, (uint32_t *))                                                           \
	X(cuptiGetTimestamp, (uint64_t *))                                                         \
	X(cuptiGetResultString, (uint32_t, const char **))                                         \
	X(cuptiGetCallbackName, (uint32_t, uint32_t, const char **))                               \
	X(cuptiSubscribe, (handle *, callback, void *))                                            \
	X(cuptiUnsubscribe, (handle))                                                              \
	X(cuptiEnableCallback, (uint32_t, handle, uint32_t, uint32_t))                             \
	X(cuptiEnableDomain, (uint32_t, handle, uint32_t))                                         \
	X(cuptiActivityEnable, (uint32_t))                                                         \
	X(cuptiActivityDisable, (uint32_t))                                                        \
	X(cuptiActivityRegisterCallbacks, (requested, completed))                                  \
	X(cuptiActivityRegisterTimestampCallback, (uint64_t(*)(void)))                             \
	X(cuptiActivityFlushAll, (uint32_t))                                                       \
	X(cuptiActivityFlushPeriod, (uint32_t))                                                    \
	X(cuptiActivityGetNextRecord, (uint8_t *, size_t, struct record **))                       \
	X(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))                         \
	X(cuptiActivitySetAttribute, (uint32_t, size_t *, const void *))                           \
	X(cuptiActivityGetAttribute, (uint32_t, size_t *, void *))                                 \
	X(cuptiSetThreadIdType, (uint32_t))                                                        \
	X(cuptiFinalize, (void))

#define DECLARE(name, params) extern enum result(*name) params;
CUPTI_FUNCTIONS(DECLARE)
#undef DECLARE

/* The numbers of a few functions. */
enum {
	SITE_CTX_SYNCHRONIZE = 17,
	SITE_MEMCPY_HTOD = 276,
	SITE_LAUNCH = 307,
	SITE_RUNTIME_MEMCPY = 31,
	SITE_RUNTIME_SYNCHRONIZE = 165,
};

extern void *driver_library;
extern uint32_t version; /* of CUPTI: 13, 22, 130001 */

/* A driver function by name, with its type. */
#define CU(function)       ((__typeof__(&function))dlsym(driver_library, #function))
#define OK(function, ...)  assert_int_equal(CU(function)(__VA_ARGS__), CUDA_SUCCESS)
#define SUCCEEDS(...)      assert_int_equal(__VA_ARGS__, RESULT_SUCCESS)
#define REFUSED(code, ...) assert_int_equal(__VA_ARGS__, code)

/* What was told, in the order in which it came. */
struct told {
	uint32_t domain, site, correlation, context;
	bool exit;
	char function[40], symbol[40];
	uint64_t params[11]; /* the first bytes of them */
	int result;          /* at the exit */
	uint64_t data;       /* what the enter left for the exit */
};

struct seen {
	union any_record record[4096];
	size_t n;
	struct told told[256];
	size_t n_told, calls;      /* kept, and all */
	size_t buffers, requested; /* brought, asked for */
	uint64_t threads;          /* bits of the threads that brought them: see thread_bit */
};

extern struct seen seen; /* the tests look at it while nothing is running */

int scene_open(void **state);  /* once: libraries, context, module */
int scene_clean(void **state); /* after each test: no session, nothing seen */

void scene_end(void); /* cuptiFinalize, if there is a session */

/* How the collecting program behaves; scene_clean sets what it says here. */
extern struct manner {
	size_t buffer_bytes; /* 64 KiB; 0: it gives none */
	size_t max_records;  /* 0 */
	size_t params_bytes; /* of a call that are kept: 0 */
	bool finalize;       /* false: at the next exit */
	bool graphs;         /* false: they were measured, and CUPTI cannot be finalized */
} manner;

/* Subscribes, registers and enables kinds, a list that 0 ends; times in CLOCK_MONOTONIC. */
handle scene_start(const uint32_t *kinds);
#define KINDS_OF(...) ((const uint32_t[]){ __VA_ARGS__, 0 })

void request(uint8_t **buffer, size_t *bytes, size_t *max_records);
void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
void tell(void *user, uint32_t domain, uint32_t site, const void *data);
uint64_t monotonic(void);

CUfunction tick_function(void);
void launch(CUstream stream);
CUstream new_stream(void);
CUgraphExec two_kernels(void); /* one after the other */
void wait_for_all(void);       /* the device, then a flush */

size_t records_now(void); /* while something may be running */
size_t count_kind(uint32_t kind);
/* The nth record of a kind; fails the test where there are fewer. */
const union any_record *nth(uint32_t kind, size_t n);

#endif
