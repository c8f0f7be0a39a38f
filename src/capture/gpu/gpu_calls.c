// SPDX-License-Identifier: MIT
#include "capture/gpu/gpu_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/owned.h"
#include "base/xalloc.h"
#include "capture/call_queue.h"
#include "capture/call_texts.h"
#include "capture/runtime_launches.h"

/* ---- gpu launches -------------------------------------------------------------------------- */

#define SETTLED_NS      300000000ull   /* all have agents, and nothing changed: probes may go */
#define SETTLED_MOST_NS 10000000000ull /* where processes are born all the time */
#define WORTH_NS        5000000000ull  /* probes that were away for less were not worth it */
#define QUIET_NS        50000000ull    /* between looks at who is still in a launch */
#define OVERLAP_NS      50000000ull    /* both tell, after the probes are back */

enum gpu_launches_state {
	HOOKED,
	IGNORED, /* the probes are there for launches that began before */
	UNHOOKED,
};

struct gpu_launches {
	struct modules *modules;
	struct programs *programs;
	enum gpu_launches_state state;
	uint64_t unsettled_ns;      /* when something changed last */
	uint64_t settle_ns;         /* how long after that probes may go */
	uint64_t look_ns;           /* when to look at who is in a launch */
	uint64_t from_ns, until_ns; /* agents tell of what began between */
};

struct gpu_launches *gpu_launches_new(struct modules *modules, struct programs *programs)
{
	struct gpu_launches *l = xcalloc(1, sizeof(*l));

	l->modules = modules;
	l->programs = programs;
	l->settle_ns = SETTLED_NS;
	return l;
}

void gpu_launches_free(struct gpu_launches *l)
{
	free(l);
}

bool gpu_launches_are_told(const struct gpu_launches *l, uint64_t begin_ns)
{
	return begin_ns >= l->from_ns && begin_ns < l->until_ns;
}

static void ignore(struct gpu_launches *l, bool yes)
{
	for (size_t i = 0; i < modules_count(l->modules); i++)
		module_ignore_launches(modules_at(l->modules, i), yes);
}

/* ---- taking away --------------------------------------------------------------------------- */

static void begin_ignoring(struct gpu_launches *l, uint64_t now_ns)
{
	l->from_ns = now_ns;
	l->until_ns = UINT64_MAX;
	l->state = IGNORED;
	l->look_ns = now_ns + QUIET_NS;
	ignore(l, true);
}

static void try_unhook(struct gpu_launches *l, uint64_t now_ns)
{
	if (now_ns < l->look_ns)
		return;
	l->look_ns = now_ns + QUIET_NS;
	if (launches_are_open(l->modules, l->programs, HOOK_LAUNCH))
		return;
	launches_hook(l->modules, HOOK_LAUNCH, false);
	l->state = UNHOOKED;
}

/* ---- putting back -------------------------------------------------------------------------- */

void gpu_launches_put_back(struct gpu_launches *l, uint64_t now_ns)
{
	if (l->state == HOOKED)
		return;
	ignore(l, false);
	if (l->state == UNHOOKED)
		launches_hook(l->modules, HOOK_LAUNCH, true);
	l->settle_ns = now_ns - l->from_ns >= WORTH_NS ? SETTLED_NS : 2 * l->settle_ns;
	if (l->settle_ns > SETTLED_MOST_NS)
		l->settle_ns = SETTLED_MOST_NS;
	l->state = HOOKED;
	l->until_ns = clock_now_ns() + OVERLAP_NS; /* hooking took a while */
	l->unsettled_ns = now_ns;
}

void gpu_launches_unsettle(struct gpu_launches *l, uint64_t now_ns)
{
	l->unsettled_ns = now_ns;
	gpu_launches_put_back(l, now_ns);
}

void gpu_launches_turn(struct gpu_launches *l, bool covered, uint64_t now_ns)
{
	if (!covered) {
		gpu_launches_unsettle(l, now_ns);
	} else if (l->state == HOOKED && now_ns - l->unsettled_ns >= l->settle_ns) {
		begin_ignoring(l, now_ns);
	} else if (l->state == IGNORED) {
		try_unhook(l, now_ns);
	}
}

/* ---- gpu calls ----------------------------------------------------------------------------- */

#define LAST        256   /* calls of a thread that a double may be of; a power of two */
#define OLDER       8     /* in a row: those before are older, too, though some come late */
#define THREADS_MAX 1024  /* 6 KiB each; beyond, who launched least recently is forgotten */
#define NAMED       65536 /* kernels whose names were given; beyond, they are given again */
#define SLOP_NS     200   /* see correlate.c */

struct told {
	uint64_t begin_ns, end_ns;
	uint16_t hook;
	bool by_agent;
};

struct gpu_calls_thread {
	uint32_t tid, pid;
	struct told last[LAST];
	uint64_t count; /* ever */
	struct owned owned;
	UT_hash_handle hh;
};

struct gpu_calls_key {
	uint64_t handle, pid;
};

struct named {
	struct gpu_calls_key key;
	uint32_t generation; /* wire_kernels_generation */
	struct owned owned;
	UT_hash_handle hh;
};

struct gpu_calls {
	const struct wire_state *state;
	struct call_queue *queue;
	struct gpu_calls_thread *threads;
	struct named *named;
	struct owner *of_threads, *of_named; /* by process */
	uint64_t unreadable;
};

struct gpu_calls *gpu_calls_new(const struct wire_state *state)
{
	struct gpu_calls *calls = xcalloc(1, sizeof(*calls));

	calls->state = state;
	calls->queue = call_queue_new();
	return calls;
}

struct order_source gpu_calls_source(struct gpu_calls *calls)
{
	return (struct order_source){ call_queue_take, call_queue_release, calls->queue };
}

uint64_t gpu_calls_refused(const struct gpu_calls *calls)
{
	return call_queue_refused(calls->queue);
}

/* ---- forgetting ---------------------------------------------------------------------------- */

static void name_drop(struct gpu_calls *calls, struct named *named)
{
	owned_remove(&calls->of_named, &named->owned);
	MAP_DROP(calls->named, named);
}

static void forget_names(struct gpu_calls *calls)
{
	struct named *named, *next;

	HASH_ITER (hh, calls->named, named, next)
		name_drop(calls, named);
}

static void thread_drop(struct gpu_calls *calls, struct gpu_calls_thread *thread)
{
	owned_remove(&calls->of_threads, &thread->owned);
	MAP_DROP(calls->threads, thread);
}

void gpu_calls_free(struct gpu_calls *calls)
{
	struct gpu_calls_thread *thread, *next;

	if (!calls)
		return;
	HASH_ITER (hh, calls->threads, thread, next) {
		thread_drop(calls, thread);
	}
	call_queue_free(calls->queue);
	forget_names(calls);
	free(calls);
}

void gpu_calls_forget(struct gpu_calls *calls, uint32_t pid)
{
	struct owned *owned, *next;

	call_queue_forget(calls->queue, pid);
	for (owned = owned_first(calls->of_threads, pid); owned; owned = next) {
		next = owned_next(owned);
		thread_drop(calls, OWNED_ENTRY(owned, struct gpu_calls_thread));
	}
	for (owned = owned_first(calls->of_named, pid); owned; owned = next) {
		next = owned_next(owned);
		name_drop(calls, OWNED_ENTRY(owned, struct named));
	}
}

const struct hook *gpu_calls_hook(const struct module *driver, const char *name)
{
	for (size_t i = 0; i < driver->n_hooks; i++) {
		const struct hook *hook = &driver->hooks[i];

		if (hook->group == HOOK_LAUNCH && !strcmp(hook->name, name))
			return hook;
	}
	return NULL;
}

/* ---- names --------------------------------------------------------------------------------- */

/* As the programs do it: by the pointer in the handle. The text is read by who gets the record. */
static void add_name(struct gpu_calls *calls, const struct wire_call *call, uint64_t handle)
{
	struct wire_name name = { .head = call->head, .key = handle, .source = NAME_OF_HANDLE };

	if (calls->state->name_offset == WIRE_NO_OFFSET ||
	    !call_memory_read(call->head.tgid, handle + calls->state->name_offset, &name.from,
	                      sizeof(name.from)) ||
	    !name.from)
		return;
	name.head.type = WIRE_NAME;
	name.head.flags = 0;
	name.head.bytes = 0;
	name.head.time_ns = call->begin_ns;
	call_queue_add(calls->queue, &name.head, WIRE_NAME_BYTES(0));
}

static void name_kernel(struct gpu_calls *calls, const struct wire_call *call, uint64_t handle)
{
	struct gpu_calls_key key = { .handle = handle, .pid = call->head.tgid };
	uint32_t generation = wire_kernels_generation(calls->state, call->head.tgid);
	struct named *named = MAP_FIND(calls->named, &key);

	if (!handle || (named && named->generation == generation))
		return;
	if (!named) {
		if (HASH_COUNT(calls->named) >= NAMED)
			name_drop(calls, calls->named);
		named = MAP_ADD(calls->named, key, &key);
		owned_add(&calls->of_named, call->head.tgid, &named->owned);
	}
	named->generation = generation;
	add_name(calls, call, handle);
}

/* ---- calls --------------------------------------------------------------------------------- */

static struct gpu_calls_thread *thread_get(struct gpu_calls *calls, uint32_t pid, uint32_t tid)
{
	struct gpu_calls_thread *thread = MAP_FIND(calls->threads, &tid);

	/* what the other one tells of the same launch may be on its way */
	if (thread && HASH_COUNT(calls->threads) >= THREADS_MAX) {
		HASH_DEL(calls->threads, thread);
		HASH_ADD_INT(calls->threads, tid, thread);
	}
	if (!thread) {
		if (HASH_COUNT(calls->threads) >= THREADS_MAX)
			thread_drop(calls, calls->threads);
		thread = MAP_ADD(calls->threads, tid, &tid);
	}
	if (thread->pid != pid || !thread->owned.owner) {
		owned_remove(&calls->of_threads, &thread->owned);
		owned_add(&calls->of_threads, pid, &thread->owned);
	}
	thread->pid = pid;
	return thread;
}

/* Arguments in the order of the prototype are the registers', then those on the stack. */
static void put_words(struct wire_call *call, const struct hook *hook,
                      const struct agent_call *record)
{
	const struct capture_plan *plan = &hook->plan;
	const uint64_t *blob = record->word + record->arguments;
	uint32_t n = record->blob < plan->blob_words ? record->blob : plan->blob_words;

	for (uint32_t i = 0; i < record->arguments && i < WIRE_REGS + plan->stack; i++) {
		if (i < WIRE_REGS)
			call->word[WIRE_AT_REG + i] = record->word[i];
		else
			call->word[WIRE_AT_STACK + i - WIRE_REGS] = record->word[i];
	}
	if (plan->blob == PLAN_NO_ARG)
		return;
	if (n < plan->blob_words)
		call->head.flags |= WIRE_UNREADABLE;
	memcpy(&call->word[WIRE_AT_BLOB], blob, n * sizeof(*blob));
}

void gpu_calls_add(struct gpu_calls *calls, uint32_t pid, uint32_t tid, const struct hook *hook,
                   const struct agent_call *record)
{
	struct wire_call call = { .head = { .type = WIRE_CALL,
		                            .flags = WIRE_BY_AGENT,
		                            .hook = hook->id,
		                            .tgid = pid,
		                            .tid = tid,
		                            .time_ns = record->end_ns },
		                  .begin_ns = record->begin_ns,
		                  .result = record->result };

	call.head.words = (uint8_t)cookie_words(hook_cookie(hook));
	put_words(&call, hook, record);
	calls->unreadable += (call.head.flags & WIRE_UNREADABLE) != 0;
	if (hook->plan.kernel < WIRE_REGS)
		name_kernel(calls, &call, call.word[WIRE_AT_REG + hook->plan.kernel]);
	call_queue_add(calls->queue, &call.head, WIRE_CALL_BYTES(call.head.words));
}

uint64_t gpu_calls_unreadable(const struct gpu_calls *calls)
{
	return calls->unreadable;
}

static void remember(struct gpu_calls *calls, const struct wire_call *call)
{
	struct gpu_calls_thread *thread = thread_get(calls, call->head.tgid, call->head.tid);

	thread->last[thread->count++ % LAST] =
		(struct told){ call->begin_ns, call->head.time_ns, call->head.hook,
		               call->head.flags & WIRE_BY_AGENT };
}

/* Whether both are of one launch: what the programs saw lies around what the agent did. */
static bool are_one(const struct told *told, const struct wire_call *call)
{
	const struct told other = { call->begin_ns, call->head.time_ns, call->head.hook,
		                    call->head.flags & WIRE_BY_AGENT };
	const struct told *inner = told->by_agent ? told : &other;
	const struct told *outer = told->by_agent ? &other : told;

	return told->hook == other.hook && told->by_agent != other.by_agent &&
	       outer->begin_ns <= inner->begin_ns + SLOP_NS &&
	       outer->end_ns + SLOP_NS >= inner->end_ns;
}

bool gpu_calls_is_double(struct gpu_calls *calls, const struct wire_call *call)
{
	uint32_t tid = call->head.tid, older = 0;
	const struct gpu_calls_thread *thread = MAP_FIND(calls->threads, &tid);

	if (thread && thread->pid != call->head.tgid)
		thread = NULL;
	for (uint64_t i = thread ? thread->count : 0; i > 0 && thread->count - i < LAST; i--) {
		const struct told *told = &thread->last[(i - 1) % LAST];

		if (are_one(told, call))
			return true;
		older = told->end_ns < call->begin_ns ? older + 1 : 0;
		if (older == OLDER)
			break;
	}
	remember(calls, call);
	return false;
}
