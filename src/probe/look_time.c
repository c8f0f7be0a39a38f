// SPDX-License-Identifier: MIT
#include "probe/look_time.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "probe/account.h"
#include "probe/helper_inside.h"
#include "probe/person.h"

/*
 * What accounts are made for is waited for beside other work. This keeps the capture itself. What
 * has another way, or can be left out with no harm to others, gets least: 0.5 s at once. Symbols of
 * all libraries of a large program take a second or two, and are read once.
 */
static const unsigned weights[LOOK_TIMES] = {
	[LOOK_AT_MAPS] = 8,    [LOOK_INTO_FILES] = 4, [LOOK_FOR_JUMPS] = 2, [LOOK_FOR_NAMES] = 4,
	[LOOK_AT_SYMBOLS] = 1, [LOOK_AT_THREADS] = 1, [LOOK_AT_TABLES] = 1,
};

static struct {
	pthread_mutex_t lock;
	struct accounts users[LOOK_TIMES];
	atomic_bool was_over[LOOK_TIMES];
} looks = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_limited(uint64_t person)
{
	return person != PERSON_ROOT && person != PERSON_UNKNOWN;
}

bool look_time_was_over(enum look_time what)
{
	return atomic_load(&looks.was_over[what]);
}

bool look_time_is_over(enum look_time what, uint64_t person)
{
	uint64_t now_ns = clock_now_ns();
	bool over;

	if (!is_limited(person) || !look_time_was_over(what))
		return false;
	pthread_mutex_lock(&looks.lock);
	over = account_is_over(accounts_of(&looks.users[what], person, now_ns), now_ns);
	pthread_mutex_unlock(&looks.lock);
	return over;
}

void look_time_charge(enum look_time what, uint64_t person, uint64_t busy_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (!is_limited(person))
		return;
	pthread_mutex_lock(&looks.lock);
	if (account_charge(accounts_of(&looks.users[what], person, now_ns), weights[what] * busy_ns,
	                   now_ns))
		atomic_store(&looks.was_over[what], true);
	pthread_mutex_unlock(&looks.lock);
}
