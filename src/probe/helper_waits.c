// SPDX-License-Identifier: MIT
/* Of helper.h: who is not asked any more, for good or for a while, and what is said of that. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/quota.h"
#include "probe/account.h"
#include "probe/helper.h"
#include "probe/helper_inside.h"
#include "probe/person.h"

#define OF_USER_MAX 4   /* helpers that hang for a user; then all of his targets are given up */
#define OF_ALL_MAX  16  /* and for all; then nobody's memory is read any more */
#define NEWS_MAX    64  /* sentences; who goes on is counted only */
#define PIDS_MAX    128 /* targets; of others their users are given up sooner */
#define ENDED_NS    100000000ull   /* how often helpers are looked at that hang */
#define PERSON_NS   10000000ull    /* how long a process is taken for the same user's */
#define GONE_NS     60000000000ull /* then the pid of one that is gone may be another user's */
#define ASKED_MOST  1024           /* processes that are remembered for these */

/* A target that did not answer. */
struct given_up {
	pid_t pid;
	int process; /* a pidfd, which tells its end. When it began is what it may not tell */
	UT_hash_handle hh;
};

/* A helper that hangs; its end closes the socket's other end. */
struct hanging {
	int socket;
	uint64_t person;
};

/* Who was found behind a process, and when. */
struct asked {
	pid_t pid;
	bool over; /* it has ended since */
	uint64_t person, at_ns;
};

struct helper_waits_news {
	pid_t pid;
	char text[512];
};

static struct {
	uint64_t unanswered;
	struct given_up *given_up;
	struct accounts users;
	struct hanging hanging[OF_ALL_MAX];
	struct quota of_hanging; /* as many as it says are taken */
	uint64_t looked_ns;      /* at them */
	struct helper_waits_news news[NEWS_MAX];
	size_t n_news, told_news;
	pthread_mutex_t asked_lock;     /* of the next: the helper's is held for long */
	struct asked asked[ASKED_MOST]; /* by the last bits of their pids */
} waits = { .of_hanging = { .user = { OF_USER_MAX }, .all = { OF_ALL_MAX }, .root_too = true },
	    .asked_lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- who it is ----------------------------------------------------------------------------- */

static struct asked asked_of(pid_t pid)
{
	LOCKED(&waits.asked_lock);
	return waits.asked[(unsigned)pid % ASKED_MOST];
}

/*
 * Before anything is asked: who waits for long may find the process gone. Names of one that is gone
 * take time as well, and that is its user's, not that of all who are gone.
 */
uint64_t waits_person(pid_t pid)
{
	uint64_t now = clock_now_ns(), person;
	struct asked asked;

	if (pid == getpid())
		return PERSON_UNKNOWN;
	asked = asked_of(pid);
	if (asked.pid == pid && now - asked.at_ns <= PERSON_NS)
		return asked.person;
	person = person_of_process(pid);
	if (person == PERSON_UNKNOWN)
		return asked.pid == pid && now - asked.at_ns <= GONE_NS ? asked.person : person;
	LOCKED(&waits.asked_lock);
	waits.asked[(unsigned)pid % ASKED_MOST] =
		(struct asked){ .pid = pid, .person = person, .at_ns = now };
	return person;
}

void helper_process_ended(pid_t pid, uint64_t end_ns)
{
	struct asked *asked = &waits.asked[(unsigned)pid % ASKED_MOST];

	LOCKED(&waits.asked_lock);
	asked->over |= asked->pid == pid && asked->at_ns <= end_ns;
}

void helper_process_begun(pid_t pid)
{
	struct asked *asked = &waits.asked[(unsigned)pid % ASKED_MOST];

	LOCKED(&waits.asked_lock);
	if (asked->pid == pid && asked->over)
		*asked = (struct asked){ 0 };
}

/* ---- helpers that hang --------------------------------------------------------------------- */

static void forget_ended(void)
{
	uint64_t now = clock_now_ns();

	if (now - waits.looked_ns < ENDED_NS)
		return;
	waits.looked_ns = now;
	for (size_t i = waits.of_hanging.taken; i-- > 0;) {
		struct pollfd end = { .fd = waits.hanging[i].socket };

		if (poll(&end, 1, 0) <= 0)
			continue;
		close(end.fd);
		quota_give(&waits.of_hanging, waits.hanging[i].person, 0, 1);
		waits.hanging[i] = waits.hanging[waits.of_hanging.taken];
	}
}

static void forget_one(struct given_up *given_up)
{
	HASH_DEL(waits.given_up, given_up);
	close(given_up->process);
	free(given_up);
}

/* And its number may be another's. */
static bool has_ended(const struct given_up *given_up)
{
	struct pollfd end = { .fd = given_up->process, .events = POLLIN };

	return poll(&end, 1, 0) > 0;
}

bool waits_refuse(pid_t pid, uint64_t person)
{
	uint64_t now = clock_now_ns();
	struct given_up *given_up;

	if (waits.of_hanging.taken)
		forget_ended();
	if (quota_refuses(&waits.of_hanging, person, 0, 1))
		return true;
	given_up = MAP_FIND(waits.given_up, &pid);
	if (given_up && !has_ended(given_up))
		return true;
	if (given_up)
		forget_one(given_up);
	return account_is_over(accounts_of(&waits.users, person, now), now);
}

/* ---- giving up ----------------------------------------------------------------------------- */

static struct helper_waits_news *add_news(pid_t pid)
{
	if (waits.n_news == NEWS_MAX)
		return NULL;
	waits.news[waits.n_news].pid = pid;
	return &waits.news[waits.n_news++];
}

/* "process 12" */
static const char *process_text(pid_t pid, char text[32])
{
	if (pid)
		snprintf(text, 32, "process %d", pid);
	return pid ? text : "a process that is gone";
}

static void tell(pid_t pid, const char *what, int ms, const char *more)
{
	struct helper_waits_news *news = add_news(pid);
	char process[32];

	if (news)
		snprintf(news->text, sizeof(news->text),
		         "%s: %s could not be read within %g s (a FUSE file, userfaultfd "
		         "or a file server?); its memory and files are not read any more, and "
		         "kernels may stay without names and libraries unhooked%s",
		         process_text(pid, process), what, ms / 1000.0, more);
}

static void tell_over(pid_t pid)
{
	struct helper_waits_news *news = add_news(pid);
	char process[32];

	if (news)
		snprintf(news->text, sizeof(news->text),
		         "%s: memory and files of this user's processes have made cuscope "
		         "wait for %g s (a FUSE file, userfaultfd or a file server?); they are not "
		         "read for the next %g s or so, and kernels may stay without names and "
		         "libraries unhooked",
		         process_text(pid, process), ACCOUNT_MOST_NS / 1e9,
		         (ACCOUNT_MOST_NS - ACCOUNT_AGAIN_NS) * ACCOUNT_LEAK / 1e9);
}

void waits_charge(pid_t pid, uint64_t person, uint64_t waited_ns)
{
	uint64_t now = clock_now_ns();
	struct account *account = accounts_of(&waits.users, person, now);
	bool over = account_charge(account, waited_ns, now);

	if (over && !account->told)
		tell_over(pid);
	account->told |= over;
}

static void forget_given_up(void)
{
	struct given_up *given_up, *next;

	HASH_ITER (hh, waits.given_up, given_up, next) {
		if (has_ended(given_up))
			forget_one(given_up);
	}
}

static void add_given_up(pid_t pid)
{
	int process;
	struct given_up *given_up = MAP_FIND(waits.given_up, &pid);

	if (given_up)
		return;
	if (HASH_COUNT(waits.given_up) >= PIDS_MAX)
		forget_given_up();
	process = HASH_COUNT(waits.given_up) < PIDS_MAX ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (process < 0)
		return;
	given_up = MAP_ADD(waits.given_up, pid, &pid);
	given_up->process = process;
}

/* Of a process that is gone there is nothing more to be read, and its paths are looked for under
 * the root of others. */
void waits_give_up(pid_t pid, uint64_t person, const char *what, int ms, int socket)
{
	waits.hanging[waits.of_hanging.taken] = (struct hanging){ socket, person };
	quota_add(&waits.of_hanging, person, 0, 1);
	if (pid && person != PERSON_UNKNOWN)
		add_given_up(pid);
	if (waits.of_hanging.taken == OF_ALL_MAX)
		tell(pid, what, ms,
		     "; too many hang, so nobody's memory and files are read until some have "
		     "ended");
	else if (quota_of_user(&waits.of_hanging, person) == OF_USER_MAX)
		tell(pid, what, ms,
		     "; nor are those of other processes of this user, while four such reads hang");
	else
		tell(pid, what, ms, "");
	waits_charge(pid, person, (uint64_t)ms * 1000000);
}

void waits_unanswered(void)
{
	waits.unanswered++;
}

void waits_end(void)
{
	struct given_up *given_up, *next_given_up;

	for (size_t i = 0; i < waits.of_hanging.taken; i++)
		close(waits.hanging[i].socket);
	quota_free(&waits.of_hanging);
	HASH_ITER (hh, waits.given_up, given_up, next_given_up)
		forget_one(given_up);
	accounts_free(&waits.users);
	memset(waits.asked, 0, sizeof(waits.asked));
}

/* ---- what is asked of outside -------------------------------------------------------------- */

bool helper_gave_up(pid_t pid)
{
	bool gave_up;

	helper_lock();
	gave_up = waits_refuse(pid, waits_person(pid));
	helper_unlock();
	return gave_up;
}

uint64_t helper_unanswered(void)
{
	uint64_t n;

	helper_lock();
	n = waits.unanswered;
	helper_unlock();
	return n;
}

bool helper_news(pid_t *pid, char *text, size_t size)
{
	bool any;

	helper_lock();
	any = waits.told_news < waits.n_news;
	if (any) {
		*pid = waits.news[waits.told_news].pid;
		snprintf(text, size, "%s", waits.news[waits.told_news].text);
		waits.told_news++;
	}
	helper_unlock();
	return any;
}
