// SPDX-License-Identifier: MIT
/* One try at diverting a process or at putting it back, by a process that is made for it. */
#include "divert/divert_inside.h"

#ifdef __x86_64__

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

/* ---- the process that does it ---------------------------------------------------------------- */

/*
 * While threads are stopped, nobody but those that are real-time programs themselves goes before
 * it: one that was let go would else run first, and the others wait.
 */
static void hurry(void)
{
	const struct sched_param first = { .sched_priority = 1 };

	sched_setscheduler(0, SCHED_FIFO, &first);
}

static int ended(pid_t pid, struct err *err)
{
	return err_set(
		err, ESRCH,
		"process %d has ended, executes another program, or keeps its code from being read",
		pid);
}

/* Whether something of what is to be put back is there. */
static bool is_there(const struct divert_job *job, pid_t tid)
{
	for (size_t i = 0; i < job->count; i++)
		if (area_open(job->targets[i], tid) && area_is_written(job->targets[i]))
			return true;
	return false;
}

/*
 * Before threads are stopped: what may take long, or will not do anyway. A process that executes
 * another program by now, or one under the same number, is not stopped for what it never had.
 */
static int prepare(const struct divert_job *job, struct err *err)
{
	struct divert_target *target = job->targets[0];
	pid_t tid = process_living_thread(target->pid);
	int rc;

	if (job->kind == DIVERT_TAKE_BACK && tid && is_there(job, tid))
		return 0;
	if (job->kind == DIVERT_TAKE_BACK && tid && area_is_anothers(target, tid))
		return err_set(err, EPERM,
		               "process %d has other users or groups than when its functions were "
		               "diverted, and is left as it is: its jumps pass on",
		               target->pid);
	if (job->kind == DIVERT_TAKE_BACK)
		return ended(target->pid, err);
	if (!tid || !area_open(target, tid))
		return ended(target->pid, err);
	rc = area_find(target, err);
	if (!rc)
		divert_ahead(target);
	return rc;
}

/* Everything that is written while threads wait is there before. How long the writing will take. */
static int get_ready(const struct divert_job *job, uint64_t *write_ns, struct err *err)
{
	struct divert_writers *writers = divert_writers_new();
	int rc;

	for (size_t i = 0; i < job->count; i++) {
		job->targets[i]->writers = writers;
		job->targets[i]->code = divert_code_new(job->targets[i]);
		write_touch(job->targets[i]);
	}
	rc = prepare(job, err);
	for (size_t i = 0; i < job->count; i++)
		*write_ns += write_time_ns(job->targets[i]);
	return rc;
}

/* What follows happens in memory that is opened while nobody can execute another program. */
static int put(struct divert_target *target, struct stop *stop, struct err *err)
{
	int rc;

	target->tid = stop_one(stop);
	if (!area_open(target, target->tid))
		return ended(target->pid, err);
	rc = area_write(target, err);
	return rc ? rc : write_jumps(target, stop, err);
}

/* The memory that was opened for another module of the same process is its memory, too. */
static bool open_again(struct divert_target *target, const struct divert_target *opened, pid_t tid)
{
	target->tid = tid;
	if (!opened || opened->start_time != target->start_time ||
	    memcmp(&opened->person, &target->person, sizeof(target->person)) != 0)
		return area_open(target, tid);
	target->memory = opened->memory;
	return true;
}

static void leave_alone(struct divert_target *target)
{
	for (uint32_t i = 0; i < target->count; i++)
		target->entries[i].diverted = false;
}

/* -ESRCH: none has what was written there, so it has none of the jumps. */
static int take_back(const struct divert_job *job, struct stop *stop, uint64_t write_ns,
                     struct divert_reply *reply, struct err *err)
{
	pid_t pid = job->targets[0]->pid, tid = stop_one(stop);
	const struct divert_target *opened = NULL;
	bool found = false;

	if (stop_left_ns(stop) < write_ns)
		return err_set(err, EAGAIN,
		               "there was no time left to write the code of process %d", pid);
	for (size_t i = 0; i < job->count; i++) {
		struct divert_target *target = job->targets[i];

		if (open_again(target, opened, tid))
			opened = target;
		if (opened != target || !area_is_written(target)) {
			leave_alone(target);
			continue;
		}
		found = true;
		if (!write_back(target, stop, &reply->put_back, &reply->changed))
			return err_set(err, EAGAIN, "threads of process %d are ending", pid);
	}
	return found ? 0 : ended(pid, err);
}

/*
 * Calls of peers would not be told: thunks know them as threads of the process. So it keeps its
 * probes. Children of vfork are peers as well, and gone soon.
 */
static int refuse_peers(const struct peers *peers, struct err *err)
{
	return peers->count ? err_set(err, EAGAIN,
	                              "process %d shares its memory with process %d, which is no "
	                              "thread of it",
	                              peers->pid, peers->pids[0])
	                    : 0;
}

/* What else runs its code by now. Entries are put back all the same where that cannot be told. */
static int check_peers(const struct divert_job *job, const struct peers *peers,
                       const struct stop *stop, struct err *err)
{
	enum peers_since since = peers_since(peers, stop);

	if (since == PEERS_NONE || (since == PEERS_MANY && job->kind == DIVERT_TAKE_BACK))
		return 0;
	return err_set(err, EAGAIN,
	               since == PEERS_NEW ? "process %d makes processes that share its memory"
	                                  : "too many processes are made while process %d is "
	                                    "stopped",
	               peers->pid);
}

/* All threads are stopped: what is written belongs to a cut that is told of before. */
static void begin_cut(const struct divert_job *job, uint64_t since_ns)
{
	if (!job->cut)
		return;
	atomic_store(&job->cut->since_ns, since_ns);
	atomic_store(&job->cut->state, CUT_BEGUN);
}

static void tell_refusals(const struct divert_job *job)
{
	const struct divert_target *target = job->targets[0];

	memset(job->refusals, ENTRY_REFUSALS, DIVERT_FUNCTIONS_MAX);
	for (uint32_t i = 0; i < target->count; i++) {
		const struct divert_entry *entry = &target->entries[i];

		if (entry->function < DIVERT_FUNCTIONS_MAX)
			job->refusals[entry->function] = (uint8_t)entry->refusal;
	}
}

/* Before they go on. */
static void end_cut(const struct divert_job *job, bool made)
{
	if (!job->cut)
		return;
	if (made && job->kind == DIVERT_PUT)
		tell_refusals(job);
	atomic_store(&job->cut->state, made ? CUT_MADE : CUT_NOT_MADE);
}

/* What is done while all threads are stopped. */
static int change(const struct divert_job *job, struct stop *stop, uint64_t write_ns,
                  struct divert_reply *reply, struct err *err)
{
	int rc;

	begin_cut(job, stop_now_ns());
	rc = job->kind == DIVERT_PUT ? put(job->targets[0], stop, err)
	                             : take_back(job, stop, write_ns, reply, err);
	end_cut(job, !rc);
	return rc;
}

static void work(const struct divert_job *job, struct divert_reply *reply)
{
	struct err err = { 0 };
	struct stop stop = { 0 };
	struct peers peers;
	uint64_t write_ns = 0;
	int rc = get_ready(job, &write_ns, &err);

	peers_find(&peers, job->targets[0]->pid);
	if (!rc && job->kind == DIVERT_PUT)
		rc = refuse_peers(&peers, &err);
	hurry(); /* not before: all of that may take long, and others would wait */
	if (!rc)
		rc = stop_all(&stop, peers.pid, &peers, DIVERT_STOP_NS, write_ns, &err);
	if (!rc)
		rc = check_peers(job, &peers, &stop, &err);
	reply->threads = (uint32_t)stop.count;
	if (!rc)
		rc = change(job, &stop, write_ns, reply, &err);
	reply->stopped_ns = stop_let_go(&stop);
	reply->rc = rc;
	snprintf(reply->why, sizeof(reply->why), "%s", rc ? err.text : "");
}

/* ---- waiting for it -------------------------------------------------------------------------- */

/* A pipe takes so little whole, or not at all. */
static bool receive(int from, struct divert_reply *reply, uint64_t until_ns)
{
	struct pollfd fd = { .fd = from, .events = POLLIN };
	uint64_t now;
	int r;

	do {
		now = stop_now_ns();
		r = now < until_ns ? poll(&fd, 1, (int)((until_ns - now) / 1000000u) + 1) : 0;
	} while (r < 0 && errno == EINTR);
	return r > 0 && read(from, reply, sizeof(*reply)) == (ssize_t)sizeof(*reply);
}

/* What was diverted is to be put back later. */
static void take_refusals(const struct divert_job *job)
{
	struct divert_target *target = job->targets[0];

	for (uint32_t i = 0; i < target->count; i++) {
		struct divert_entry *entry = &target->entries[i];

		if (entry->function < DIVERT_FUNCTIONS_MAX)
			entry->refusal = job->refusals[entry->function];
		entry->diverted = !entry->refusal;
	}
}

/* What it has written is not known: all that looks so is put back by the next try. */
static void suspect_all(const struct divert_job *job)
{
	for (size_t i = 0; i < job->count && job->kind == DIVERT_PUT; i++)
		for (uint32_t k = 0; k < job->targets[i]->count; k++)
			job->targets[i]->entries[k].diverted = true;
}

static void no_answer(const struct divert_job *job, struct divert_reply *reply)
{
	reply->rc = -ETIMEDOUT;
	snprintf(reply->why, sizeof(reply->why),
	         "the memory of process %d could not be read or written in %.1f s",
	         job->targets[0]->pid, job->limit_ms / 1e3);
	suspect_all(job);
}

void divert_try(const struct divert_job *job, struct divert_reply *reply)
{
	uint64_t until_ns = stop_now_ns() + job->limit_ms * 1000000ull;
	pid_t parent = getpid(), child;
	int pair[2];

	if (pipe(pair)) {
		reply->rc = -errno;
		return;
	}
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		if (getppid() == parent) {
			work(job, reply);
			if (write(pair[1], reply, sizeof(*reply)) < 0)
				_exit(1);
		}
		_exit(0);
	}
	close(pair[1]);
	if (child < 0 || !receive(pair[0], reply, until_ns))
		no_answer(job, reply);
	else if (!reply->rc && job->kind == DIVERT_PUT)
		take_refusals(job);
	close(pair[0]);
	if (child > 0 && reply->rc == -ETIMEDOUT)
		kill(child, SIGKILL);
	else if (child > 0)
		waitpid(child, NULL, 0);
}

#endif
