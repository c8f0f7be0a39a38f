// SPDX-License-Identifier: MIT
/*
 * The program's buffers. One is asked for when a record has no room; it takes records in the order
 * in which their work was asked for, and goes back when it is full and all of them are complete, by
 * a thread of this library, or when the program asks. What is in it is written when it goes back.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "cupti.h"

struct buffer {
	struct buffer *next;
	uint8_t *memory;
	size_t bytes, used;
	size_t records, max_records;
	size_t open; /* records that are not complete */
	uint64_t owner;
	struct slot *first, **last;
};

/* All guarded by cupti_lock. */
static struct {
	buffer_requested requested;
	buffer_completed completed;
	struct buffer *current, *full; /* the longest there first */
	size_t dropped;
	unsigned int delivering; /* lists or single buffers on their way */
	uint32_t period_ms;
	bool shared;     /* not one for each thread */
	uint64_t worker; /* the session whose worker runs */
	bool worker_gone;
} pool = { .shared = CUPTI_RELEASE < 13000, .worker_gone = true };

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static __thread bool delivers; /* this thread is in the program's function for full buffers */

/* ---- lists ----------------------------------------------------------------------------------- */

static void append(struct buffer **list, struct buffer *buffer)
{
	while (*list)
		list = &(*list)->next;
	buffer->next = NULL;
	*list = buffer;
}

static void take(struct buffer **link, struct buffer **to)
{
	struct buffer *buffer = *link;
	*link = buffer->next;
	append(to, buffer);
}

static uint64_t owner_now(void)
{
	static atomic_ullong last;
	static __thread uint64_t mine;
	if (pool.shared)
		return 0;
	if (mine == 0)
		mine = atomic_fetch_add(&last, 1) + 1;
	return mine;
}

/* ---- going back ------------------------------------------------------------------------------ */

/* Streams in the opposite order, each in its own. */
static void shuffle(struct buffer *buffer)
{
	struct slot *out = NULL;
	while (buffer->first) {
		uint32_t least = UINT32_MAX;
		for (const struct slot *s = buffer->first; s; s = s->next)
			least = record_stream(&s->record) < least ? record_stream(&s->record)
			                                          : least;
		/* All of the lowest stream go before what is out already. */
		struct slot *group = NULL, **end = &group;
		for (struct slot **link = &buffer->first; *link;) {
			struct slot *slot = *link;
			if (record_stream(&slot->record) != least) {
				link = &slot->next;
				continue;
			}
			*link = slot->next;
			*end = slot;
			end = &slot->next;
		}
		*end = out;
		out = group;
	}
	buffer->first = out;
}

/* Hands the buffer back to the program and forgets it. Without cupti_lock. */
static void deliver(struct buffer *buffer, buffer_completed completed)
{
	size_t valid = 0;
	if (settings.shuffle)
		shuffle(buffer);
	while (buffer->first) {
		struct slot *slot = buffer->first;
		buffer->first = slot->next;
		if (slot->state != SLOT_VOID)
			valid += record_write(&slot->record, buffer->memory + valid);
		free(slot);
	}
	client_enter();
	delivers = true;
	completed(NULL, 0, buffer->memory, buffer->bytes, valid);
	delivers = false;
	client_leave();
	free(buffer);
}

static void free_buffer(struct buffer *buffer)
{
	while (buffer->first) {
		struct slot *slot = buffer->first;
		buffer->first = slot->next;
		if (slot->state == SLOT_OPEN)
			slot->buffer = NULL; /* its work frees it */
		else
			free(slot);
	}
	free(buffer);
}

struct late {
	struct buffer *buffer;
	buffer_completed completed;
	uint64_t session;
	unsigned long ms;
};

static void *late_thread(void *data)
{
	struct late *late = data;
	nanosleep(
		&(struct timespec){ (time_t)(late->ms / 1000), (long)(late->ms % 1000) * 1000000 },
		NULL);
	if (session_now() == late->session) {
		deliver(late->buffer, late->completed);
	} else {
		pthread_mutex_lock(&cupti_lock);
		free_buffer(late->buffer);
		pthread_mutex_unlock(&cupti_lock);
	}
	free(late);
	pthread_mutex_lock(&cupti_lock);
	pool.delivering--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&cupti_lock);
	return NULL;
}

static bool start_thread(void *(*function)(void *), void *data)
{
	/* Signals are the program's. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_t thread;
	bool started = pthread_create(&thread, NULL, function, data) == 0;
	if (started)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

/* Each on its own thread, later; every second one sooner, so that the order changes. */
static bool deliver_late(struct buffer *buffer)
{
	static atomic_uint n;
	struct late *late = malloc(sizeof(*late));
	if (!late)
		return false;
	unsigned long ms = settings.late_ms;
	*late = (struct late){ buffer, pool.completed, session_now(),
		               atomic_fetch_add(&n, 1) % 2 ? ms / 4 : ms };
	pool.delivering++;
	if (start_thread(late_thread, late))
		return true;
	pool.delivering--;
	free(late);
	return false;
}

/* Called and left with cupti_lock held, without it meanwhile. */
static void deliver_all(struct buffer *list)
{
	if (settings.shuffle) {
		struct buffer *reversed = NULL;
		while (list) {
			struct buffer *buffer = list;
			list = buffer->next;
			buffer->next = reversed;
			reversed = buffer;
		}
		list = reversed;
	}
	pool.delivering++;
	while (list) {
		struct buffer *buffer = list;
		buffer_completed completed = pool.completed;
		list = buffer->next;
		if (settings.late_ms && deliver_late(buffer))
			continue;
		pthread_mutex_unlock(&cupti_lock);
		deliver(buffer, completed);
		pthread_mutex_lock(&cupti_lock);
	}
	pool.delivering--;
	pthread_cond_broadcast(&changed);
}

/* ---- the worker ------------------------------------------------------------------------------ */

static struct buffer *take_complete(void)
{
	struct buffer *list = NULL;
	for (struct buffer **link = &pool.full; *link;) {
		if ((*link)->open)
			link = &(*link)->next;
		else
			take(link, &list);
	}
	return list;
}

static void wait_ms(uint32_t ms)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&changed, &cupti_lock, &until);
}

static void *worker(void *data)
{
	uint64_t mine = (uint64_t)(uintptr_t)data;
	pthread_setname_np(pthread_self(), "simcupti-worker");
	pthread_mutex_lock(&cupti_lock);
	while (session_now() == mine) {
		struct buffer *list = NULL;
		if (pool.period_ms) {
			uint64_t end = clock_ns() + pool.period_ms * 1000000u;
			while (session_now() == mine && clock_ns() < end)
				wait_ms(pool.period_ms);
			list = take_complete();
		} else {
			list = take_complete();
			if (!list)
				pthread_cond_wait(&changed, &cupti_lock);
		}
		if (list && session_now() == mine) {
			deliver_all(list);
			continue;
		}
		while (list) {
			struct buffer *buffer = list;
			list = buffer->next;
			free_buffer(buffer);
		}
	}
	pool.worker_gone = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&cupti_lock);
	return NULL;
}

/* Called with cupti_lock held. */
static void need_worker(void)
{
	uint64_t session = session_now();
	if (pool.worker == session)
		return;
	pool.worker = session;
	pool.worker_gone = !start_thread(worker, (void *)(uintptr_t)session);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct slot *put(struct buffer *buffer, const union any_record *record)
{
	struct slot *slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	slot->buffer = buffer;
	slot->record = *record;
	*buffer->last = slot;
	buffer->last = &slot->next;
	buffer->used += record_bytes(record->kind);
	buffer->records++;
	buffer->open++;
	return slot;
}

static bool has_room(const struct buffer *buffer, size_t bytes)
{
	return buffer->bytes - buffer->used >= bytes &&
	       (!buffer->max_records || buffer->records < buffer->max_records);
}

/* The thread's buffer with room for a record; those without are full from now on. */
static struct buffer *find_room(uint64_t owner, size_t bytes)
{
	for (struct buffer **link = &pool.current; *link;) {
		struct buffer *buffer = *link;
		if (buffer->owner != owner) {
			link = &buffer->next;
			continue;
		}
		if (has_room(buffer, bytes))
			return buffer;
		take(link, &pool.full);
		need_worker();
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

/* Asks the program for a buffer. Called and left with cupti_lock held, without it meanwhile. */
static void request(uint64_t owner)
{
	buffer_requested requested = pool.requested;
	uint64_t session = session_now();
	uint8_t *memory = NULL;
	size_t bytes = 0, max_records = 0;
	struct buffer *buffer;
	if (!requested)
		return;
	pthread_mutex_unlock(&cupti_lock);
	client_enter();
	requested(&memory, &bytes, &max_records);
	client_leave();
	if ((uintptr_t)memory % 8)
		misuse("the function for buffers", "one that is not aligned to 8 bytes");
	if (!memory && CUPTI_RELEASE < 12090)
		misuse("the function for buffers", "there is none: CUDA 12.9's is the first that "
		                                   "survives that");
	pthread_mutex_lock(&cupti_lock);
	if (!memory || session_now() != session)
		return;
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return;
	*buffer = (struct buffer){
		.memory = memory, .bytes = bytes, .max_records = max_records, .owner = owner
	};
	buffer->last = &buffer->first;
	append(&pool.current, buffer);
}

struct slot *slot_reserve(const union any_record *record)
{
	struct slot *slot = NULL;
	size_t bytes = record_bytes(record->kind);
	uint64_t session = session_now();
	pthread_mutex_lock(&cupti_lock);
	uint64_t owner = owner_now();
	struct buffer *buffer = find_room(owner, bytes);
	if (!buffer && session) {
		request(owner);
		buffer = find_room(owner, bytes);
	}
	if (buffer && session_now() == session)
		slot = put(buffer, record);
	if (!slot)
		pool.dropped++;
	pthread_mutex_unlock(&cupti_lock);
	return slot;
}

void slot_finish(struct slot *slot, enum slot_state state, uint64_t begin_ns, uint64_t end_ns)
{
	pthread_mutex_lock(&cupti_lock);
	struct buffer *buffer = slot->buffer;
	if (!buffer) {
		free(slot);
	} else {
		uint64_t *start = record_start(&slot->record);
		start[0] = begin_ns;
		start[1] = end_ns;
		if (slot->record.kind == KIND_KERNEL || slot->record.kind == KIND_CONCURRENT_KERNEL)
			slot->record.kernel.completed = end_ns;
		slot->state = state;
		if (--buffer->open == 0)
			pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&cupti_lock);
}

/* ---- flushing -------------------------------------------------------------------------------- */

/* What is not complete goes back as it is, without times. */
static void give_up_open(struct buffer *buffer)
{
	for (struct slot **link = &buffer->first; *link; link = &(*link)->next) {
		struct slot *slot = *link;
		if (slot->state != SLOT_OPEN)
			continue;
		struct slot *copy = malloc(sizeof(*copy));
		if (copy) {
			*copy = *slot;
			copy->state = SLOT_DONE;
			*link = copy;
		} else {
			*link = slot->next;
		}
		slot->buffer = NULL;
		if (!*link)
			break;
	}
	buffer->open = 0;
}

static struct buffer *take_for_flush(bool forced)
{
	struct buffer *list = NULL;
	struct buffer **from[] = { &pool.full, &pool.current };
	for (int i = 0; i < 2; i++) {
		for (struct buffer **link = from[i]; *link;) {
			struct buffer *buffer = *link;
			if (!forced && (buffer->open || (i == 1 && buffer->records == 0))) {
				link = &buffer->next;
				continue;
			}
			give_up_open(buffer);
			take(link, &list);
		}
	}
	return list;
}

void buffer_flush(bool forced)
{
	pthread_mutex_lock(&cupti_lock);
	deliver_all(take_for_flush(forced));
	/* Also what other threads are bringing, unless this is one of them. */
	while (pool.delivering && !delivers)
		pthread_cond_wait(&changed, &cupti_lock);
	pthread_mutex_unlock(&cupti_lock);
}

/* The program keeps the buffers that it gave, as after the real cuptiFinalize. */
void buffer_forget(void)
{
	pthread_mutex_lock(&cupti_lock);
	pthread_cond_broadcast(&changed);
	for (int ms = 0; ms < 1000 && !pool.worker_gone && !delivers; ms++)
		wait_ms(1);
	struct buffer **lists[] = { &pool.current, &pool.full };
	for (int i = 0; i < 2; i++) {
		while (*lists[i]) {
			struct buffer *buffer = *lists[i];
			*lists[i] = buffer->next;
			free_buffer(buffer);
		}
	}
	pool.requested = NULL;
	pool.completed = NULL;
	pool.dropped = 0;
	pool.period_ms = 0;
	pool.shared = CUPTI_RELEASE < 13000;
	pthread_mutex_unlock(&cupti_lock);
}

void buffer_callbacks(buffer_requested requested, buffer_completed completed)
{
	pthread_mutex_lock(&cupti_lock);
	pool.requested = requested;
	pool.completed = completed;
	pthread_mutex_unlock(&cupti_lock);
}

bool buffer_has_callbacks(void)
{
	pthread_mutex_lock(&cupti_lock);
	bool has = pool.completed != NULL;
	pthread_mutex_unlock(&cupti_lock);
	return has;
}

void buffer_period(uint32_t ms)
{
	pthread_mutex_lock(&cupti_lock);
	pool.period_ms = ms;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&cupti_lock);
}

void buffer_per_thread(bool yes)
{
	pthread_mutex_lock(&cupti_lock);
	pool.shared = !yes;
	pthread_mutex_unlock(&cupti_lock);
}

size_t buffer_dropped(void)
{
	pthread_mutex_lock(&cupti_lock);
	size_t dropped = pool.dropped;
	pool.dropped = 0;
	pthread_mutex_unlock(&cupti_lock);
	return dropped;
}

void buffer_forked(void)
{
	static const pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
	changed = fresh;
	delivers = false;
	pool.current = pool.full = NULL;
	pool.requested = NULL;
	pool.completed = NULL;
	pool.delivering = 0;
	pool.worker_gone = true;
}
