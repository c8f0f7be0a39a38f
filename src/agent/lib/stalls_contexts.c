// SPDX-License-Identifier: MIT
#include "agent/lib/stalls_contexts.h"

#include "agent/lib/glibc.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/channel.h"
#include "agent/lib/clock.h"
#include "agent/lib/stalls_device.h"

#define ENDS_MOST_MS  100 /* a call of CUPTI's that does not return holds no context up longer */
#define AWAIT_MOST_NS 1000000000ull
#define LOOK_NS       20000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sampled {
	void *context; /* read without the lock as well */
	enum context_state state;
	uint64_t awaited_ns; /* until then, by a thread, should that not say that it goes on */
	bool settled; /* was sampled, or did not come on in time: no thread waits for it again */
} sampled[CONTEXTS];
static void *in_use;           /* a call of CUPTI's is under way; guarded */
static uint32_t open;          /* they are taken */
static uint32_t answers;       /* a futex: changes with each state */
static uint64_t not_before_ns; /* nobody waits sooner */

/* Whether it is known, or there is no room for it: asked at each call that gives it work. */
static bool is_known(const void *context)
{
	bool room = false;

	for (int i = 0; i < CONTEXTS; i++) {
		const void *one = __atomic_load_n(&sampled[i].context, __ATOMIC_RELAXED);

		if (one == context)
			return true;
		room |= !one;
	}
	return !room;
}

void contexts_note(void *context)
{
	int free_one = -1;

	if (!context || !__atomic_load_n(&open, __ATOMIC_ACQUIRE) || is_known(context))
		return;
	pthread_mutex_lock(&lock);
	for (int i = CONTEXTS; i-- > 0;) {
		if (sampled[i].context == context)
			goto out;
		if (!sampled[i].context)
			free_one = i;
	}
	if (free_one >= 0 && open) {
		sampled[free_one].state = CONTEXT_NEW;
		__atomic_store_n(&sampled[free_one].context, context, __ATOMIC_RELAXED);
	}
out:
	pthread_mutex_unlock(&lock);
}

/* The lock is held. */
static void forget(struct sampled *which)
{
	which->state = CONTEXT_NONE;
	which->settled = false;
	which->awaited_ns = 0;
	__atomic_store_n(&which->context, NULL, __ATOMIC_RELAXED);
}

/* Its place is free then: another context can come to lie at its address. */
void contexts_end(void *context)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < CONTEXTS; i++) {
		if (sampled[i].context == context)
			forget(&sampled[i]);
	}
	for (int i = 0; i < ENDS_MOST_MS && in_use && in_use == context; i++) {
		pthread_mutex_unlock(&lock);
		clock_pause_ms(1);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

static void answer(void)
{
	__atomic_add_fetch(&answers, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &answers, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool contexts_is(size_t place, enum context_state state)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = sampled[place].state == state;
	pthread_mutex_unlock(&lock);
	return is;
}

bool contexts_any(enum context_state state)
{
	bool any = false;

	for (size_t i = 0; i < CONTEXTS; i++)
		any |= contexts_is(i, state);
	return any;
}

bool contexts_use(size_t place, enum context_state state, void **context)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = sampled[place].state == state;
	*context = sampled[place].context;
	if (is)
		in_use = *context;
	pthread_mutex_unlock(&lock);
	if (!is || device_enter(*context))
		return is;
	pthread_mutex_lock(&lock);
	in_use = NULL;
	if (sampled[place].context == *context)
		forget(&sampled[place]);
	pthread_mutex_unlock(&lock);
	return false;
}

void contexts_unuse(void)
{
	device_leave();
	pthread_mutex_lock(&lock);
	in_use = NULL;
	pthread_mutex_unlock(&lock);
}

void contexts_settle(size_t place, const void *context)
{
	pthread_mutex_lock(&lock);
	if (sampled[place].context == context)
		sampled[place].settled = true;
	pthread_mutex_unlock(&lock);
}

void contexts_set(size_t place, const void *context, enum context_state state)
{
	pthread_mutex_lock(&lock);
	if (sampled[place].context == context)
		sampled[place].state = state;
	pthread_mutex_unlock(&lock);
	answer();
}

/* ---- threads that wait for their context ------------------------------------------------------
 */

/* Whether it is not enabled, and may be yet, for the first time: a thread waits until then. From
 * then on nobody is to wait for it again. */
static bool is_to_come(const void *context, uint64_t until_ns)
{
	uint64_t now_ns = clock_now();
	bool comes = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < CONTEXTS && open; i++) {
		struct sampled *one = &sampled[i];

		if (one->context != context || one->state != CONTEXT_NEW)
			continue;
		comes = !one->settled;
		one->awaited_ns = until_ns;
		one->settled |= now_ns > until_ns;
	}
	pthread_mutex_unlock(&lock);
	return comes;
}

void contexts_await(void *context)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	uint64_t now_ns = clock_now(), until_ns = now_ns + AWAIT_MOST_NS;
	int error = errno;

	contexts_note(context);
	if (now_ns < __atomic_load_n(&not_before_ns, __ATOMIC_RELAXED) ||
	    !is_to_come(context, until_ns))
		return;
	wake_up();
	for (;;) {
		uint32_t before = __atomic_load_n(&answers, __ATOMIC_SEQ_CST);

		if (!is_to_come(context, until_ns))
			break;
		syscall(SYS_futex, &answers, FUTEX_WAIT_PRIVATE, before, &look, NULL, 0);
	}
	errno = error;
}

/* A thread that was cancelled, or jumped out of a signal's handler, awaits nothing for long. */
bool contexts_are_awaited(void)
{
	uint64_t now_ns = clock_now();
	bool any = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < CONTEXTS; i++)
		any |= sampled[i].state == CONTEXT_NEW && !sampled[i].settled &&
		       now_ns < sampled[i].awaited_ns;
	pthread_mutex_unlock(&lock);
	return any;
}

void contexts_not_before(uint64_t time_ns)
{
	__atomic_store_n(&not_before_ns, time_ns, __ATOMIC_RELAXED);
	answer();
}

/* ---- a session ------------------------------------------------------------------------------- */

void contexts_open(void)
{
	__atomic_store_n(&open, 1, __ATOMIC_RELEASE);
}

void contexts_close(void)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&open, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < CONTEXTS; i++)
		forget(&sampled[i]);
	pthread_mutex_unlock(&lock);
	answer();
}

void contexts_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	open = 0;
	in_use = NULL;
	for (int i = 0; i < CONTEXTS; i++)
		forget(&sampled[i]);
}
