// SPDX-License-Identifier: MIT
/* The session: how it begins and ends, and what keeps callbacks out of each other's way. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cupti.h"

pthread_mutex_t cupti_lock = PTHREAD_MUTEX_INITIALIZER;
struct settings settings;

static const struct sim_hooks hooks = {
	.enter = call_enter,
	.leave = call_leave,
	.submit = work_submit,
	.ended = work_ended,
	.cancelled = work_cancelled,
	.waited = work_waited,
	.instantiated = graph_instantiated,
	.node_made = node_made,
	.context_ends = context_ends,
	.context_made = pcs_context_new,
	.module_loaded = module_loaded,
};

static struct sim_profiler *profiler;   /* guarded by cupti_lock */
static atomic_ullong session;           /* 0: none */
static unsigned long long last_session; /* guarded by cupti_lock */
static atomic_uint clients;             /* threads that are in the program's functions */
static __thread unsigned int client_depth;

uint64_t clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static unsigned long setting(const char *name)
{
	const char *text = getenv(name);
	return text && *text ? strtoul(text, NULL, 0) : 0;
}

/* The child of a fork has no session, and none of its parent's threads. */
static void forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	cupti_lock = fresh;
	atomic_store(&session, 0);
	atomic_store(&clients, 0);
	client_depth = 0;
	buffer_forked();
}

/* The real one has destructors, in the order of those that atexit names. */
static atomic_bool taken_down;

static void take_down(void)
{
	atomic_store(&taken_down, true);
}

__attribute__((constructor)) static void prepare(void)
{
	faults_read();
	settings = (struct settings){
		.other = other_setting(),
		.busy = setting("SIMCUPTI_BUSY"),
		.old_driver = setting("SIMCUPTI_OLD_DRIVER"),
		.strict = setting("SIMCUPTI_STRICT"),
		.shuffle = setting("SIMCUPTI_SHUFFLE"),
		.late_ms = setting("SIMCUPTI_LATE_MS"),
		.bad_times = setting("SIMCUPTI_BAD_TIMES"),
		.flush_ms = setting("SIMCUPTI_FLUSH_MS"),
		.load_ms = setting("SIMCUPTI_LOAD_MS"),
		.cost_ns = setting("SIMCUPTI_COST_NS"),
		.behind_ns = setting("SIMCUPTI_BEHIND_NS"),
		.first_correlation = (uint32_t)setting("SIMCUPTI_FIRST_CORRELATION"),
	};
	pthread_atfork(NULL, NULL, forked);
	atexit(take_down);
	if (settings.other == OTHER_SEVERAL)
		session_begin();
}

uint64_t session_now(void)
{
	return atomic_load(&session);
}

const struct sim_profiler *session_profiler(void)
{
	return profiler;
}

enum result session_begin(void)
{
	enum result result = RESULT_SUCCESS;
	pthread_mutex_lock(&cupti_lock);
	if (!profiler) {
		/* Loads the driver where the program has not yet, as the real library does. */
		void *driver = dlopen("libcuda.so.1", RTLD_NOW);
		profiler = driver ? dlsym(driver, SIM_PROFILER_NAME) : NULL;
	}
	if (!profiler) {
		result = RESULT_NOT_INITIALIZED;
	} else if (session_now() == 0) {
		atomic_store(&session, ++last_session);
		profiler->install(&hooks);
	}
	pthread_mutex_unlock(&cupti_lock);
	return result;
}

void misuse(const char *function, const char *why)
{
	fprintf(stderr, "simulated libcupti: %s: %s\n", function, why);
	abort();
}

void session_need(const char *function)
{
	if (settings.strict && atomic_load(&taken_down))
		misuse(function, "after its destructors (SIMCUPTI_STRICT)");
	if (session_now() == 0)
		misuse(function, "there is no session: not before cuptiSubscribe or "
		                 "cuptiActivityEnable, and not after cuptiFinalize");
}

void client_enter(void)
{
	if (client_depth++ == 0)
		atomic_fetch_add(&clients, 1);
}

void client_leave(void)
{
	if (--client_depth == 0)
		atomic_fetch_sub(&clients, 1);
}

bool client_is_running(void)
{
	return client_depth > 0;
}

/* Those of other threads. One that is held there until this one is through is lost. */
static void wait_for_clients(void)
{
	unsigned int own = client_depth > 0;
	for (int ms = 0; ms < 2000 && atomic_load(&clients) > own; ms++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	if (atomic_load(&clients) > own)
		misuse("cuptiFinalize", "another thread is held in a callback");
}

/* What was seen to end programs on an H200 with driver 580 and CUPTI 13.0. */
static void check_leaving(void)
{
	if (settings.strict && !callback_is_at_exit())
		misuse("cuptiFinalize", "not at a call's exit (SIMCUPTI_STRICT)");
	if (any_kind_is_enabled() && callback_threads() > 1)
		misuse("cuptiFinalize", "kinds are enabled, and several threads use CUDA");
	if (graphs_were_measured())
		misuse("cuptiFinalize", "a graph was launched or instantiated while kernels were "
		                        "measured, and will write its times to what is freed now");
}

CUPTI_API enum result cuptiFinalize(void);
enum result cuptiFinalize(void)
{
	FAIL_ON_DEMAND();
	session_need(__func__);
	if (settings.other == OTHER_SEVERAL) /* nothing, as others are there */
		return RESULT_SUCCESS;
	if (callback_subscribed_v2())
		misuse(__func__, "who shares CUPTI unsubscribes");
	check_leaving();
	pcs_forget();
	pthread_mutex_lock(&cupti_lock);
	bool mine = atomic_exchange(&session, 0) != 0;
	if (mine)
		profiler->install(NULL);
	pthread_mutex_unlock(&cupti_lock);
	if (!mine)
		misuse(__func__, "called by two threads at once");
	wait_for_clients();
	callback_forget();
	activity_forget();
	buffer_forget();
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiGetVersion(uint32_t *version);
enum result cuptiGetVersion(uint32_t *version)
{
	FAIL_ON_DEMAND();
	if (!version)
		return RESULT_INVALID_PARAMETER;
	*version = CUPTI_RELEASE >= 13030   ? 130300
	           : CUPTI_RELEASE >= 13000 ? 130001
	           : CUPTI_RELEASE >= 12000 ? 22
	                                    : 13;
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiGetResultString(uint32_t code, const char **text);
enum result cuptiGetResultString(uint32_t code, const char **text)
{
	static const struct {
		enum result code;
		const char *text;
	} names[] = {
		{ RESULT_SUCCESS, "CUPTI_SUCCESS" },
		{ RESULT_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER" },
		{ RESULT_INVALID_CONTEXT, "CUPTI_ERROR_INVALID_CONTEXT" },
		{ RESULT_INVALID_OPERATION, "CUPTI_ERROR_INVALID_OPERATION" },
		{ RESULT_OUT_OF_MEMORY, "CUPTI_ERROR_OUT_OF_MEMORY" },
		{ RESULT_SIZE_NOT_SUFFICIENT, "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT" },
		{ RESULT_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED" },
		{ RESULT_NOT_COMPATIBLE, "CUPTI_ERROR_NOT_COMPATIBLE" },
		{ RESULT_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED" },
		{ RESULT_INVALID_KIND, "CUPTI_ERROR_INVALID_KIND" },
		{ RESULT_NOT_SUPPORTED, "CUPTI_ERROR_NOT_SUPPORTED" },
		{ RESULT_INSUFFICIENT_PRIVILEGES, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" },
		{ RESULT_MULTIPLE_SUBSCRIBERS, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" },
		{ RESULT_UNKNOWN, "CUPTI_ERROR_UNKNOWN" },
	};
	if (!text)
		return RESULT_INVALID_PARAMETER;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((uint32_t)names[i].code == code) {
			*text = names[i].text;
			return RESULT_SUCCESS;
		}
	}
	return RESULT_INVALID_PARAMETER;
}
