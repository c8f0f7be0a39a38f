/* SPDX-License-Identifier: MIT */
/*
 * The simulated libcupti: one subscriber beside at most one other tool, callbacks around calls,
 * records of work, for the simulated driver and runtime in the same process. It does as the real
 * one where a program that uses it can tell, and does not hide mistakes: what was not enabled gives
 * nothing, wrong arguments are refused, and what the real one would crash on aborts: use after
 * cuptiFinalize, and calling it with kinds enabled while several threads use CUDA, with another
 * thread held in a callback, or after a graph was measured; the trace of a graph that was
 * instantiated before CUPTI came.
 *
 * CUDA 13.0's fills a buffer for each thread by default, and what finds none it drops: an H100 with
 * driver 580 held 200 for 200 threads, and dropped 8,400 of their 10,000 records where it was given
 * 32; with attribute 9 set to 0 it held three at most and dropped none.
 *
 * Built as CUDA 11.0's, 12.4's, 13.0's and 13.3's (CUPTI_RELEASE). What it knows lives in one
 * session, which the first cuptiSubscribe or cuptiActivityEnable begins and cuptiFinalize ends.
 * Meanwhile its hooks are in the driver.
 *
 *   SIMCUPTI_BUSY=1               another profiler has subscribed
 *   SIMCUPTI_OTHER=alone|several  the same, and it has a name; or one that lets others in (13.3)
 *   SIMCUPTI_OLD_DRIVER=1         one that does not know of several tools
 *   SIMCUPTI_STRICT=1             cuptiFinalize aborts where it is not at a call's exit, and
 *                                 flushing after its destructors
 *   SIMCUPTI_LATE_MS=N            buffers come N ms late, each on a thread of its own
 *   SIMCUPTI_SHUFFLE=1            buffers, and the streams in them, come in the opposite order
 *   SIMCUPTI_BAD_TIMES=N          every Nth piece of work has times 0, backwards or in the future
 *   SIMCUPTI_BEHIND_NS=N          the GPU's clock is N ns behind the program's
 *   SIMCUPTI_FIRST_CORRELATION=N  what is counted from; 0 is left out
 *   SIMCUPTI_FLUSH_MS=N           cuptiActivityFlushAll takes that long
 *   SIMCUPTI_LOAD_MS=N            cuptiSubscribe takes that long, as loading CUPTI does
 *   SIMCUPTI_COST_NS=N            what every call costs until cuptiFinalize
 *   SIMCUDA_FAIL=...              results on demand, as for the driver's functions (fault.h)
 */
#ifndef SIMCUDA_CUPTI_CUPTI_H
#define SIMCUDA_CUPTI_CUPTI_H

#include <pthread.h>
#include <stdbool.h>

#include "../fault.h"
#include "../profiler.h"
#include "records.h"

#ifndef CUPTI_RELEASE
#define CUPTI_RELEASE 13000 /* or 11000, 12040, 13030 */
#endif

#define CUPTI_API __attribute__((visibility("default")))

/* The function's result where SIMCUDA_FAIL asks for one. */
#define FAIL_ON_DEMAND()                                                                           \
	do {                                                                                       \
		int fault = faults_wanted ? faults_take(__func__) : 0;                             \
		if (fault)                                                                         \
			return (enum result)fault;                                                 \
	} while (0)

/* Whoever has subscribed by cuptiSubscribe_v2 has to call by _v2 alone, and others have not. */
#define NOT_BY_V2()                                                                                \
	do {                                                                                       \
		if (CUPTI_RELEASE >= 13030 && several_refuses())                                   \
			return RESULT_MULTIPLE_SUBSCRIBERS;                                        \
	} while (0)

enum other { OTHER_NONE, OTHER_ALONE, OTHER_SEVERAL };

struct settings {
	enum other other;
	bool busy, strict, shuffle, old_driver;
	unsigned long late_ms, bad_times, flush_ms, load_ms, cost_ns, behind_ns;
	uint32_t first_correlation;
};

extern struct settings settings;

/* ---- session.c ------------------------------------------------------------------------------- */

/* Guards everything in this library. Never held while the program is called. */
extern pthread_mutex_t cupti_lock;

/* Counts sessions; 0 while there is none. */
uint64_t session_now(void);

/* Begins one unless there is one: RESULT_NOT_INITIALIZED where there is no simulated driver. */
enum result session_begin(void);

/* Ends the process: a use that the real library does not survive. */
void misuse(const char *function, const char *why) __attribute__((noreturn));
/* misuse() where there is no session. */
void session_need(const char *function);

const struct sim_profiler *session_profiler(void);

/* While the program's functions are called: its own calls of CUDA are not told then. Finalizing
 * waits for those of other threads. */
void client_enter(void);
void client_leave(void);
bool client_is_running(void); /* on this thread */

uint64_t clock_ns(void); /* CLOCK_MONOTONIC */

/* ---- several.c ------------------------------------------------------------------------------- */

enum other other_setting(void);
bool several_refuses(void);
void several_count(const struct sim_work *work, size_t n);

/* ---- callback.c ------------------------------------------------------------------------------ */

typedef void (*callback)(void *user, uint32_t domain, uint32_t site, const void *data);

struct subscriber;
enum result callback_subscribe(struct subscriber **handle, callback call, void *user, bool v2);
bool callback_is_v2(const struct subscriber *handle);
bool callback_subscribed_v2(void);
bool call_enter(struct sim_call *call);
void call_leave(struct sim_call *call);
void callback_forget(void);        /* the session ends */
bool call_others_are_inside(void); /* another thread is in a call of the driver's */
void node_made(uint64_t node, uint64_t original);
void context_ends(void *context);
void module_loaded(void *context);
uint32_t correlation_current(void);  /* of the call that this thread is in; 0: none */
bool callback_is_at_exit(void);      /* this thread is in a callback at a call's exit */
unsigned int callback_threads(void); /* that called CUDA in this session */

/* ---- pcs.c ----------------------------------------------------------------------------------- */

bool pcs_is_on(void); /* of any context */
void pcs_wait(void);  /* where the driver is held, but by this thread */
/* A kernel ran in the context of this number. */
/* `made_ns`: of a graph that was made then; 0: by itself. */
void pcs_ran(uint32_t context, const char *name, uint64_t made_ns, uint64_t begin_ns,
             uint64_t end_ns);
void pcs_context_ends(void *context); /* and was told of */
void pcs_context_new(void *context);
const char *pcs_cubin(size_t *bytes); /* of every module: what has line information looks like */
void pcs_forget(void);                /* the session ends: none may be enabled */

/* ---- activity.c ------------------------------------------------------------------------------ */

bool kind_is_enabled(enum kind kind);
void *work_submit(const struct sim_work *work, size_t n);
void work_ended(void *trace, const struct sim_span *span, size_t n);
void work_cancelled(void *trace);
void work_waited(const struct sim_wait *wait);
void graph_instantiated(void);
bool graphs_were_measured(void); /* in this session */
bool any_kind_is_enabled(void);
/* A call returned that began then: for the kinds that record calls. */
bool calls_are_recorded(enum sim_layer layer);
void call_record(const struct sim_call *call, uint32_t site);
void overhead_add(uint32_t overhead_kind, uint64_t begin_ns, uint64_t end_ns);
void kinds_forget(void);
void activity_forget(void);

/* The clock of records: what the program registered, else CLOCK_REALTIME. */
uint64_t timestamp_now(void);
uint64_t timestamp_of(uint64_t monotonic_ns);

/* ---- buffer.c -------------------------------------------------------------------------------- */

enum slot_state { SLOT_OPEN, SLOT_DONE, SLOT_VOID };

/* A record to be, from when its work is asked for. */
struct slot {
	struct slot *next;
	struct buffer *buffer; /* NULL: delivered without it, or the session ended */
	enum slot_state state;
	union any_record record; /* times in CLOCK_MONOTONIC until it is delivered */
};

typedef void (*buffer_requested)(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void (*buffer_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes);

typedef void (*buffer_requested_v2)(uint8_t **buffer, size_t *bytes, size_t *max_records,
                                    void *info);
typedef void (*buffer_completed_v2)(uint8_t *buffer, size_t bytes, size_t valid_bytes, void *info);

/* The program's functions that others here call. */
CUPTI_API enum result cuptiActivityRegisterCallbacks(buffer_requested requested,
                                                     buffer_completed completed);
CUPTI_API enum result cuptiActivityEnable(uint32_t kind);
CUPTI_API enum result cuptiActivityDisable(uint32_t kind);
CUPTI_API enum result cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
                                                 struct record **record);
CUPTI_API enum result cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream,
                                                        size_t *dropped);
CUPTI_API enum result cuptiActivitySetAttribute(uint32_t number, size_t *bytes, const void *value);
CUPTI_API enum result cuptiGetTimestamp(uint64_t *ns);

/* Room for a record in a buffer of the program: NULL where it gave none, which is counted. */
struct slot *slot_reserve(const union any_record *record);
/* It has its times, or SLOT_VOID: it will never be. The slot is not to be used any more. */
void slot_finish(struct slot *slot, enum slot_state state, uint64_t begin_ns, uint64_t end_ns);

void buffer_callbacks(buffer_requested requested, buffer_completed completed);
bool buffer_has_callbacks(void);
void buffer_flush(bool forced);
void buffer_period(uint32_t ms);
size_t buffer_dropped(void); /* since it was last asked */
void buffer_forget(void);    /* the session ends */
void buffer_forked(void);    /* in the child of a fork */
void buffer_per_thread(bool yes);

/* ---- record.c -------------------------------------------------------------------------------- */

size_t record_bytes(uint32_t kind); /* as this release writes it; 0: unknown kind */
/* Appends the record at `to` with the program's times, and returns its bytes. */
size_t record_write(const union any_record *record, uint8_t *to);
uint64_t *record_start(union any_record *record); /* start, and end after it */
uint32_t record_stream(const union any_record *record);

/* ---- site.c ---------------------------------------------------------------------------------- */

/* CUPTI's number of a function; -1: it has none. */
int site_number(enum sim_layer layer, const char *name);
const char *site_name(enum sim_layer layer, uint32_t number); /* NULL: unknown */
uint32_t site_count(enum sim_layer layer);

#endif
