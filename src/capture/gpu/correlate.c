// SPDX-License-Identifier: MIT
#include "capture/gpu/correlate.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/owned.h"
#include "base/quota.h"
#include "base/xalloc.h"

#define LAST        64     /* calls of a thread, a power of two: agents lag by a few milliseconds */
#define WAITING_MAX 131072 /* of a thread, a power of two */
#define WAITING_NS  1000000000 /* of calls that are passed, since it was told */
#define AROUND      16         /* calls of an agent that one of the programs' may lie in */
#define WAITING_FEW 16         /* more room than this is given back when it is empty */
#define WAITING_ALL                                                                                \
	262144            /* room of all threads, 32 bytes each; beyond, a call is not waited for */
#define WAITING_EACH 1024 /* a thread's, where half of that is taken */
#define WAITING_USER (WAITING_ALL / 5 * 2) /* a user's but root */
#define THREADS_MAX                                                                                \
	4096 /* 2 KiB each; beyond, the first that came of who has most is forgotten               \
	      */
#define STALE_NS    60000000000ull /* an entry that old goes before any other */
#define WAYS        4
#define GROUP       64
#define GROUPS_BITS 11
#define SETS        (GROUP << GROUPS_BITS) /* 2^19 calls, 32 bytes each */

/* Both sides read the same clock, the kernel by its fast variant, which may be off by a tick. */
#define SLOP_NS 200

#define NUMBER_WAITS 0
#define NUMBER_NONE  UINT64_MAX

struct correlate_entry {
	struct correlate_id id;
	uint32_t tid, pid;
	uint64_t number; /* or NUMBER_WAITS, NUMBER_NONE */
	uint64_t begin_ns;
};

struct seen_call {
	uint64_t begin_ns, end_ns, number;
	bool work;
};

struct correlate_waiting {
	struct correlate_id id;
	uint64_t begin_ns, end_ns;
	uint64_t told_ns; /* when calls had come that ended before; its own may be told with it */
};

struct correlate_key {
	uint32_t pid, tid;
};

/* Whose threads there are, the first of them first. */
struct correlate_user {
	uint64_t person;
	TAILQ_HEAD(, correlate_thread) threads; /* never empty */
	size_t n, waiting_room;
	UT_hash_handle hh;
};

struct correlate_thread {
	struct correlate_key key;
	struct correlate_user *user;
	TAILQ_ENTRY(correlate_thread) of_user;
	struct seen_call last[LAST];
	uint64_t calls; /* ever: the last one is at (calls - 1) % LAST */
	struct correlate_waiting *waiting;
	uint32_t first, count, capacity; /* a circle; capacity is a power of two */
	struct owned owned;              /* by pid */
	UT_hash_handle hh;
};

#define OWN_MAX 256

struct correlate {
	struct correlate_span own[OWN_MAX]; /* a circle */
	uint32_t owns;                      /* ever */
	uint64_t own_until_ns;              /* the latest end of these */
	struct correlate_thread *threads, *recent;
	struct correlate_user *users;
	struct owner *owners;
	size_t waiting_room;             /* of all threads */
	uint64_t passed_ns;              /* all calls that ended before have come */
	struct correlate_entry *entries; /* SETS times WAYS; in a set the newest first */
	uint16_t *whose;                 /* the same: a user each, by his hash */
};

struct correlate *correlate_new(void)
{
	struct correlate *c = xcalloc(1, sizeof(*c));

	c->entries = xcalloc((size_t)SETS * WAYS, sizeof(*c->entries));
	c->whose = xcalloc((size_t)SETS * WAYS, sizeof(*c->whose));
	return c;
}

/* ---- threads ------------------------------------------------------------------------------- */

static void room_add(struct correlate *c, struct correlate_thread *thread, size_t more, size_t less)
{
	c->waiting_room += more - less;
	thread->user->waiting_room += more - less;
}

static void thread_drop(struct correlate *c, struct correlate_thread *thread)
{
	struct correlate_user *user = thread->user;

	c->recent = NULL;
	room_add(c, thread, 0, thread->capacity);
	TAILQ_REMOVE(&user->threads, thread, of_user);
	if (!--user->n)
		MAP_DROP(c->users, user);
	owned_remove(&c->owners, &thread->owned);
	HASH_DEL(c->threads, thread);
	free(thread->waiting);
	free(thread);
}

/* Who has most threads gives one: nobody's are pushed out by how many another has. */
static void make_room(struct correlate *c)
{
	const struct correlate_user *most = c->users;

	for (const struct correlate_user *user = c->users; user; user = user->hh.next)
		if (user->n > most->n)
			most = user;
	thread_drop(c, TAILQ_FIRST(&most->threads));
}

void correlate_free(struct correlate *c)
{
	struct correlate_thread *thread, *next;

	if (!c)
		return;
	HASH_ITER (hh, c->threads, thread, next) {
		thread_drop(c, thread);
	}
	free(c->entries);
	free(c->whose);
	free(c);
}

/* By its process as well: an agent can tell of any number that nobody has. */
static struct correlate_thread *thread_get(struct correlate *c, const struct correlate_span *span)
{
	const struct correlate_key key = { .pid = span->pid, .tid = span->tid };
	struct correlate_thread *thread = c->recent;

	if (thread && thread->key.tid == key.tid && thread->key.pid == key.pid)
		return thread;
	thread = MAP_FIND(c->threads, &key);
	if (!thread) {
		if (HASH_COUNT(c->threads) >= THREADS_MAX)
			make_room(c);
		thread = MAP_ADD(c->threads, key, &key);
		thread->user = MAP_MAKE(c->users, person, &span->person);
		if (!thread->user->n++)
			TAILQ_INIT(&thread->user->threads);
		TAILQ_INSERT_TAIL(&thread->user->threads, thread, of_user);
		owned_add(&c->owners, key.pid, &thread->owned);
	}
	c->recent = thread;
	return thread;
}

/* ---- CUPTI's numbers ----------------------------------------------------------------------- */

/*
 * Calls that follow each other lie side by side, which the processor's caches want; groups of them
 * are spread (Knuth 6.4), and turned within, since numbers come with gaps of some regularity.
 */
static struct correlate_entry *set_of(const struct correlate *c, struct correlate_id id)
{
	uint32_t group = id.number / GROUP + id.agent * 0x9e3779b1u, hash = group * 2654435769u;
	uint32_t at = (hash >> (32 - GROUPS_BITS)) * GROUP + (id.number + (hash >> 10)) % GROUP;

	return &c->entries[(size_t)at * WAYS];
}

static struct correlate_entry *entry_find(const struct correlate *c, struct correlate_id id)
{
	struct correlate_entry *set = set_of(c, id);

	for (int i = 0; i < WAYS; i++) {
		if (set[i].id.agent == id.agent && set[i].id.number == id.number && set[i].begin_ns)
			return &set[i];
	}
	return NULL;
}

/* How many of a set are this user's. */
static size_t entries_of(const uint16_t *whose, uint16_t user)
{
	size_t n = 0;

	for (size_t i = 0; i < WAYS; i++)
		n += whose[i] == user;
	return n;
}

/*
 * Which of a full set makes room for one more of a user: the oldest, where its time is over, else
 * that of who has most of the set. So no flood of one pushes out another's last.
 */
static size_t entry_to_go(const struct correlate *c, const struct correlate_entry *set,
                          const uint16_t *whose, uint16_t user)
{
	size_t go = WAYS - 1, n, most = 0;

	if (!set[go].begin_ns || set[go].begin_ns + STALE_NS < c->passed_ns)
		return go;
	for (size_t i = WAYS; i-- > 0;) {
		n = entries_of(whose, whose[i]) * 2 + (whose[i] == user);
		if (n > most)
			go = i;
		most = n > most ? n : most;
	}
	return go;
}

static void entry_add(struct correlate *c, const struct correlate_span *call,
                      struct correlate_id id)
{
	struct correlate_entry *set = set_of(c, id), *old = entry_find(c, id);
	uint16_t *whose = c->whose + (set - c->entries);
	uint16_t user = (uint16_t)hash_bytes(&call->person, sizeof(call->person));
	size_t older = old ? (size_t)(old - set) : entry_to_go(c, set, whose, user);

	memmove(set + 1, set, older * sizeof(*set));
	memmove(whose + 1, whose, older * sizeof(*whose));
	set[0] = (struct correlate_entry){ id, call->tid, call->pid, NUMBER_WAITS, call->begin_ns };
	whose[0] = user;
}

/* ---- whose call it is ---------------------------------------------------------------------- */

/* Around the agent's call; or within it, where only the driver's call inside it is hooked. */
static bool belongs(const struct seen_call *call, uint64_t begin_ns, uint64_t end_ns)
{
	if (call->end_ns && call->begin_ns <= begin_ns + SLOP_NS &&
	    call->end_ns + SLOP_NS >= end_ns)
		return true;
	return call->work && call->begin_ns + SLOP_NS >= begin_ns &&
	       (call->end_ns ? call->end_ns : call->begin_ns) <= end_ns + SLOP_NS;
}

static struct seen_call *find_call(struct correlate_thread *thread, uint64_t begin_ns,
                                   uint64_t end_ns)
{
	for (uint64_t i = thread->calls; i > 0 && thread->calls - i < LAST; i--) {
		struct seen_call *call = &thread->last[(i - 1) % LAST];

		if (belongs(call, begin_ns, end_ns))
			return call;
		if (call->end_ns && call->end_ns + SLOP_NS < begin_ns)
			return NULL; /* it is older, and so are those before it */
	}
	return NULL;
}

/* Of calls without an end: the latest that began before. */
static const struct seen_call *find_entered(const struct correlate_thread *thread,
                                            uint64_t begin_ns)
{
	for (uint64_t i = thread->calls; i > 0 && thread->calls - i < LAST; i--) {
		const struct seen_call *call = &thread->last[(i - 1) % LAST];

		if (call->begin_ns <= begin_ns + SLOP_NS)
			return call->end_ns ? NULL : call;
	}
	return NULL;
}

static struct correlate_waiting *waiting_first(struct correlate_thread *thread)
{
	return thread->count ? &thread->waiting[thread->first] : NULL;
}

static void waiting_drop(struct correlate *c, struct correlate_thread *thread)
{
	thread->first = (thread->first + 1) & (thread->capacity - 1);
	if (--thread->count || thread->capacity <= WAITING_FEW)
		return;
	free(thread->waiting);
	thread->waiting = NULL;
	room_add(c, thread, 0, thread->capacity);
	thread->capacity = thread->first = 0;
}

static void settle(struct correlate *c, struct correlate_id id, const struct seen_call *call)
{
	struct correlate_entry *entry = entry_find(c, id);

	if (!entry || entry->number != NUMBER_WAITS)
		return;
	entry->number = call ? call->number : NUMBER_NONE;
	if (call && call->begin_ns < entry->begin_ns)
		entry->begin_ns = call->begin_ns;
}

static const struct correlate_waiting *waiting_at(const struct correlate_thread *thread, size_t i)
{
	return &thread->waiting[(thread->first + i) & (thread->capacity - 1)];
}

/* No later call is its own: it began before this one, and ended before this one had. Calls of a
 * thread lie in each other or apart. */
static bool has_passed(const struct seen_call *call, const struct correlate_waiting *w)
{
	return w->begin_ns < call->begin_ns &&
	       (!call->end_ns || w->end_ns < call->begin_ns || w->end_ns + SLOP_NS < call->end_ns);
}

static bool is_settled_by(const struct seen_call *call, const struct correlate_waiting *w)
{
	return belongs(call, w->begin_ns, w->end_ns) || has_passed(call, w);
}

/*
 * The number that was reserved for this call, if one was. What waits in a thread is in order of
 * its end: first what this call settles, which is looked at once, then what lies around it. An
 * agent can have told of any number that go on, of which no call looks at more than a few.
 */
static uint64_t reserved(const struct correlate *c, const struct correlate_thread *thread,
                         const struct seen_call *call)
{
	uint64_t end_ns = call->end_ns ? call->end_ns : call->begin_ns;
	size_t left = 0;

	for (size_t i = 0; i < thread->count && left < AROUND; i++) {
		const struct correlate_waiting *w = waiting_at(thread, i);
		const struct correlate_entry *entry;

		if (w->begin_ns > end_ns + SLOP_NS)
			break;
		left += left || !is_settled_by(call, w);
		if (!belongs(call, w->begin_ns, w->end_ns))
			continue;
		entry = entry_find(c, w->id);
		if (entry && entry->number != NUMBER_WAITS && entry->number != NUMBER_NONE)
			return entry->number;
	}
	return 0;
}

/* What waited for this call, or can wait no longer now that it has come. */
static void settle_waiting(struct correlate *c, struct correlate_thread *thread,
                           const struct seen_call *call)
{
	struct correlate_waiting *w;

	while ((w = waiting_first(thread)) && is_settled_by(call, w)) {
		settle(c, w->id,
		       belongs(call, w->begin_ns, w->end_ns) ? call
		                                             : find_entered(thread, w->begin_ns));
		waiting_drop(c, thread);
	}
}

uint64_t correlate_call(struct correlate *c, const struct correlate_span *span, uint64_t next)
{
	struct correlate_thread *thread = thread_get(c, span);
	struct seen_call call = { .begin_ns = span->begin_ns,
		                  .end_ns = span->end_ns,
		                  .work = span->work };
	uint64_t number = reserved(c, thread, &call);

	call.number = number ? number : next;
	settle_waiting(c, thread, &call);
	thread->last[thread->calls++ % LAST] = call;
	return call.number;
}

static bool waits_in_vain(const struct correlate *c, const struct correlate_waiting *w)
{
	uint64_t since_ns = w->end_ns > w->told_ns ? w->end_ns : w->told_ns;

	return since_ns + WAITING_NS < c->passed_ns;
}

static bool has_room(const struct correlate *c, const struct correlate_thread *thread,
                     uint32_t capacity)
{
	const struct correlate_user *user = thread->user;
	size_t more = capacity - thread->capacity, room = c->waiting_room + more;

	if (user->person != QUOTA_ROOT && user->waiting_room + more > WAITING_USER)
		return false;
	return room <= WAITING_ALL && (room <= WAITING_ALL / 2 || capacity <= WAITING_EACH);
}

static void wait_for_call(struct correlate *c, struct correlate_thread *thread,
                          struct correlate_waiting waiting)
{
	while (thread->count &&
	       (thread->count == WAITING_MAX || waits_in_vain(c, waiting_first(thread)))) {
		settle(c, waiting_first(thread)->id, NULL);
		waiting_drop(c, thread);
	}
	if (thread->count == thread->capacity) {
		uint32_t capacity = thread->capacity ? 2 * thread->capacity : 16;
		struct correlate_waiting *more;

		if (!has_room(c, thread, capacity)) {
			settle(c, waiting.id, NULL); /* its work is of no known call */
			return;
		}
		room_add(c, thread, capacity, thread->capacity);
		more = xcalloc(capacity, sizeof(*more));

		for (uint32_t i = 0; i < thread->count; i++)
			more[i] = thread->waiting[(thread->first + i) & (thread->capacity - 1)];
		free(thread->waiting);
		thread->waiting = more;
		thread->first = 0;
		thread->capacity = capacity;
	}
	thread->waiting[(thread->first + thread->count++) & (thread->capacity - 1)] = waiting;
}

void correlate_passed(struct correlate *c, uint64_t passed_ns)
{
	c->passed_ns = passed_ns;
}

/* The driver's call and the runtime's around it have one number, and may both be told of. */
static bool told_already(const struct correlate *c, const struct correlate_span *call,
                         struct correlate_id id)
{
	const struct correlate_entry *entry = entry_find(c, id);

	return entry && entry->begin_ns + SLOP_NS >= call->begin_ns &&
	       entry->begin_ns <= call->end_ns && entry->number != NUMBER_NONE;
}

bool correlate_agent_call(struct correlate *c, const struct correlate_span *span,
                          struct correlate_id id)
{
	struct correlate_thread *thread = thread_get(c, span);
	const struct seen_call *call;

	if (told_already(c, span, id))
		return true;
	call = find_call(thread, span->begin_ns, span->end_ns);
	if (!call && thread->count &&
	    span->end_ns + SLOP_NS < waiting_at(thread, thread->count - 1)->end_ns)
		return false;
	entry_add(c, span, id);
	if (call)
		settle(c, id, call);
	else
		wait_for_call(c, thread,
		              (struct correlate_waiting){ id, span->begin_ns, span->end_ns,
		                                          c->passed_ns });
	return true;
}

enum correlate_answer correlate_find(struct correlate *c, struct correlate_id id, uint64_t *number,
                                     uint64_t *begin_ns)
{
	const struct correlate_entry *entry = entry_find(c, id);

	if (!entry)
		return CORRELATE_UNKNOWN;
	*begin_ns = entry->begin_ns;
	*number = 0;
	if (entry->number == NUMBER_WAITS)
		return CORRELATE_WAITS;
	if (entry->number == NUMBER_NONE)
		return CORRELATE_NONE;
	*number = entry->number;
	return CORRELATE_KNOWN;
}

/* ---- time of the agent's own ---------------------------------------------------------------- */

void correlate_own_time(struct correlate *c, const struct correlate_span *own)
{
	c->own[c->owns++ % OWN_MAX] = *own;
	if (own->end_ns > c->own_until_ns)
		c->own_until_ns = own->end_ns;
}

uint64_t correlate_own_ns(const struct correlate *c, const struct correlate_span *call)
{
	uint64_t sum = 0;

	if (call->begin_ns > c->own_until_ns) /* as a rule: it is at the begin of processes */
		return 0;
	for (uint32_t i = 0; i < c->owns && i < OWN_MAX; i++) {
		const struct correlate_span *own = &c->own[i];

		if (own->tid == call->tid && own->pid == call->pid &&
		    own->begin_ns + SLOP_NS >= call->begin_ns &&
		    own->end_ns <= call->end_ns + SLOP_NS)
			sum += own->end_ns - own->begin_ns;
	}
	return sum;
}

/* ---- numbers before their calls ------------------------------------------------------------ */

static const struct correlate_waiting *waits_in(const struct correlate_thread *thread,
                                                const struct correlate_entry *entry)
{
	uint32_t low = 0, high = thread->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct correlate_waiting *w = waiting_at(thread, middle);

		if (w->begin_ns == entry->begin_ns)
			return w->id.number == entry->id.number && w->id.agent == entry->id.agent
			               ? w
			               : NULL;
		if (w->begin_ns < entry->begin_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static struct correlate_thread *waits_where(const struct correlate *c,
                                            const struct correlate_entry *entry)
{
	struct correlate_thread *thread;
	struct correlate_key key;

	if (!entry || entry->number != NUMBER_WAITS)
		return NULL;
	key = (struct correlate_key){ .pid = entry->pid, .tid = entry->tid };
	thread = MAP_FIND(c->threads, &key);
	return thread && waits_in(thread, entry) ? thread : NULL;
}

bool correlate_waits(const struct correlate *c, struct correlate_id id, uint32_t *tid,
                     uint64_t *begin_ns)
{
	const struct correlate_entry *entry = entry_find(c, id);

	if (!waits_where(c, entry))
		return false;
	*begin_ns = entry->begin_ns;
	*tid = entry->tid;
	return true;
}

bool correlate_may_come(const struct correlate *c, struct correlate_id id)
{
	const struct correlate_entry *entry = entry_find(c, id);
	const struct correlate_thread *thread = waits_where(c, entry);

	return thread && !waits_in_vain(c, waits_in(thread, entry));
}

bool correlate_reserve(struct correlate *c, struct correlate_id id, uint64_t next, uint64_t *number)
{
	struct correlate_entry *entry = entry_find(c, id);
	const struct seen_call *call = NULL;
	struct correlate_thread *thread;

	*number = 0;
	if (!entry || entry->number != NUMBER_WAITS)
		return false;
	thread = waits_where(c, entry);
	if (thread)
		call = find_entered(thread, entry->begin_ns);
	*number = call ? call->number : thread ? next : 0;
	entry->number = *number ? *number : NUMBER_NONE;
	return next && *number == next && !call;
}

void correlate_forget(struct correlate *c, uint32_t pid, uint64_t time_ns)
{
	struct owned *owned, *next;

	for (owned = owned_first(c->owners, pid); owned; owned = next) {
		struct correlate_thread *thread = OWNED_ENTRY(owned, struct correlate_thread);

		next = owned_next(owned);
		while (thread->count && waiting_first(thread)->begin_ns < time_ns)
			waiting_drop(c, thread);
		if (!thread->count)
			thread_drop(c, thread);
	}
}
