// SPDX-License-Identifier: MIT
/* NCCL's RAS is asked, and heeded as far as it may speak of processes. */
#include "capture/ranks_inside.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/nudge.h"
#include "base/array.h"
#include "base/at_end.h"
#include "base/clock.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/process.h"
#include "base/vec.h"
#include "probe/helper.h"

#define FAR_MAX       4096 /* ranks elsewhere that are told of in one answer */
#define STANDING_NS   500000000ull
#define SPACES_USER   16
#define SPACES_OTHERS 48
#define SILENT_USER   4 /* places that did not answer, each of which was waited for */

/* Where its job's RAS listens, as far as it says so: two jobs in one network have a port each. */
static uint16_t port_of(struct ranks_feed *feed, pid_t pid)
{
	struct process_reader_options options = { 0 };
	struct process_identity identity;
	struct err err = { 0 };
	const char *colon;
	uint64_t port;

	if (!feed->reader && !process_labels_choose(&options.choice, "NCCL_RAS_ADDR", &err))
		feed->reader = process_reader_new(&options);
	if (!feed->reader || !process_reader_read(feed->reader, pid, 0, &identity))
		return RAS_PORT;
	colon = strrchr(identity.chosen[0], ':');
	return colon && parse_number(colon + 1, UINT16_MAX, &port) && port ? (uint16_t)port
	                                                                   : RAS_PORT;
}

/* Who it is elsewhere. Without the lock. */
static bool look_at(struct ranks_feed *feed, struct known_rank *process)
{
	pid_t pid = (pid_t)process->pid;
	struct process_file space = { 0 };
	uint64_t begin_ns = helper_busy_ns();
	unsigned user = 0;
	bool found;

	found = process_look(pid, PROCESS_FILE, "ns/net", &space, sizeof(space)) >= 0 &&
	        (process->own_pid = process_own_number(pid, pid)) != 0 &&
	        process_status(pid, 0, "Uid: %u", &user) &&
	        (process->start_time = process_start_time(pid)) != 0;
	process->port = found ? port_of(feed, pid) : RAS_PORT;
	look_time_charge(LOOK_AT_THREADS, process->person, helper_busy_ns() - begin_ns);
	process->space = space.inode;
	process->user = (uid_t)user;
	return found;
}

static void look_at_new(struct ranks_feed *feed)
{
	for (size_t i = 0; i < feed->n_processes; i++) {
		struct known_rank process = feed->processes[i], *there;
		bool found;

		if (process.space || process.gone ||
		    look_time_is_over(LOOK_AT_THREADS, process.person))
			continue;
		pthread_mutex_unlock(&feed->lock);
		found = look_at(feed, &process);
		pthread_mutex_lock(&feed->lock);
		/* there may be another by now, and handles of it */
		there = &feed->processes[i];
		if (there->pid != process.pid || there->space || there->gone)
			continue;
		there->space = process.space;
		there->port = process.port;
		there->own_pid = process.own_pid;
		there->user = process.user;
		there->start_time = process.start_time;
		if (!found)
			ranks_be_gone(feed, there);
	}
}

/* An answer, and whom it may speak of: whoever answers may say of its own processes what it likes,
 * and root of all in its network; on a port that a process named, which may be anybody's, of that
 * process's user alone. While the lock is held. */
struct heard {
	const struct ras_answer *answer;
	uint64_t number, person; /* person: of who was asked */
	struct known_rank *members[PROCESSES_MAX];
	size_t n;
};

ORDER_POINTERS_BY(members_in_order, struct known_rank, UP(own_pid), UP(pid));

static void heard_begin(struct heard *heard, struct ranks_feed *feed,
                        const struct known_rank *asked, const struct ras_answer *answer)
{
	*heard = (struct heard){ .answer = answer,
		                 .number = ++feed->answers,
		                 .person = asked->person };
	for (size_t i = 0; i < feed->n_processes; i++) {
		struct known_rank *process = &feed->processes[i];

		if (ranks_where(process) == ranks_where(asked) && !process->gone &&
		    (asked->port == RAS_PORT || process->person == asked->person) &&
		    (!answer->user || answer->user == process->user))
			heard->members[heard->n++] = process;
	}
	qsort(heard->members, heard->n, sizeof(struct known_rank *), members_in_order);
}

static struct known_rank *process_of(const struct heard *heard, const struct ras_rank *rank)
{
	size_t at = ARRAY_BEFORE(heard->n, i, heard->members[i]->own_pid < rank->pid);

	return at < heard->n && heard->members[at]->own_pid == rank->pid && !rank->missing &&
	                       !rank->elsewhere
	               ? heard->members[at]
	               : NULL;
}

/* False: it is said to be too many, whatever is repeated. */
static bool keep_rank(const struct heard *heard, struct known_rank *process,
                      const struct ras_rank *rank)
{
	if (process->answer != heard->number)
		process->n_told = 0;
	process->answer = heard->number;
	if (process->n_told++ >= RANKS_EACH)
		return false; /* counted by who asks */
	for (size_t i = 0; i < process->n_ranks; i++) {
		struct ras_rank *known = &process->ranks[i];

		if (known->hash != rank->hash || known->host_hash != rank->host_hash ||
		    known->pid_hash != rank->pid_hash)
			continue;
		*known = *rank;
		return true;
	}
	if (process->n_ranks >= RANKS_EACH)
		return false;
	process->ranks = vec_room(process->ranks, process->n_ranks, sizeof(*process->ranks));
	process->ranks[process->n_ranks++] = *rank;
	return true;
}

static bool is_silent(struct ranks_feed *feed, const struct known_rank *process)
{
	uint64_t now_ns = clock_now_ns();
	const struct known_user *user = ranks_user_of(feed, process->person);

	for (size_t i = 0; i < feed->n_silent; i++)
		if (feed->silent[i] == ranks_where(process))
			return true;
	if (!process->person)
		return false;
	return !user || user->silent ||
	       account_is_over(accounts_of(&feed->waited, process->person, now_ns), now_ns);
}

/* What it took until there was an answer, or that there was none. */
static void waited_for(struct ranks_feed *feed, const struct known_rank *process, uint64_t begin_ns,
                       int rc)
{
	struct known_user *user = ranks_user_of(feed, process->person);
	uint64_t now_ns = clock_now_ns();

	if (user)
		account_charge(accounts_of(&feed->waited, process->person, now_ns),
		               now_ns - begin_ns, now_ns);
	if (rc != -ETIMEDOUT)
		return;
	if (feed->n_silent < SPACES_MAX)
		feed->silent[feed->n_silent++] = ranks_where(process);
	if (user)
		user->silent = ++user->n_silent >= SILENT_USER;
}

static struct known_comm *comm_of(struct ranks_feed *feed, uint64_t person,
                                  const struct ras_rank *rank)
{
	for (size_t i = 0; i < feed->n_comms; i++)
		if (feed->comms[i].person == person && feed->comms[i].hash == rank->hash &&
		    feed->comms[i].host_hash == rank->host_hash &&
		    feed->comms[i].pid_hash == rank->pid_hash)
			return &feed->comms[i];
	if (quota_take(&feed->of_comms, person, 0, 1))
		return NULL;
	feed->comms = vec_room(feed->comms, feed->n_comms, sizeof(*feed->comms));
	feed->comms[feed->n_comms] = (struct known_comm){ .person = person,
		                                          .hash = rank->hash,
		                                          .host_hash = rank->host_hash,
		                                          .pid_hash = rank->pid_hash };
	return &feed->comms[feed->n_comms++];
}

/* Ranks of one communicator lie together. */
static size_t same_comm(const struct ras_answer *answer, size_t first)
{
	const struct ras_rank *ranks = answer->ranks;
	size_t n = 1;

	while (first + n < answer->n && ranks[first + n].hash == ranks[first].hash &&
	       ranks[first + n].host_hash == ranks[first].host_hash &&
	       ranks[first + n].pid_hash == ranks[first].pid_hash)
		n++;
	return n;
}

/* A process that is a rank of this communicator; NULL: it is another job's. */
static const struct known_rank *member_of(const struct heard *heard, size_t first, size_t n)
{
	const struct known_rank *member = NULL;

	for (size_t i = first; i < first + n && !member; i++)
		member = process_of(heard, &heard->answer->ranks[i]);
	return member;
}

/* With the lock. Of communicators that nobody here is in nothing is told: others use the machine
 * as well. `far`: of the others' ranks elsewhere, too. Returns whether one was of somebody here. */
static bool take_answer(struct ranks_feed *feed, const struct heard *heard, bool far)
{
	const struct ras_answer *answer = heard->answer;
	size_t n_far = 0;
	bool any = false;
	bool kept;

	for (size_t i = 0, n; i < answer->n; i += n) {
		const struct known_rank *member;

		n = same_comm(answer, i);
		member = member_of(heard, i, n);
		any |= member != NULL;
		for (size_t k = i; member && k < i + n; k++) {
			const struct ras_rank *rank = &answer->ranks[k];
			struct known_rank *process = process_of(heard, rank);
			const struct ranks_told told = {
				.pid = process ? process->pid : member->pid,
				.own = process,
				.person = process ? process->person : member->person,
				.rank = *rank,
				.begin_ns = answer->asked_ns,
				.end_ns = answer->answered_ns
			};

			kept = process ? keep_rank(heard, process, rank)
			               : far && ++n_far <= FAR_MAX;
			if (kept)
				ranks_tell(feed, &told);
			feed->left.ranks += process && !kept;
		}
	}
	feed->left.far += n_far > FAR_MAX ? n_far - FAR_MAX : 0;
	feed->left.cut += any && answer->cut;
	return any;
}

/* Whether it has moved since the last answer, and whether all have launched the same. */
static void comm_judge(struct known_comm *comm, const struct ras_rank *ranks, size_t n,
                       uint64_t now_ns)
{
	uint64_t counts = 0;

	comm->uneven = false;
	for (size_t i = 0; i < n; i++) {
		for (int kind = 0; kind < RAS_COUNTS; kind++)
			counts = (counts ^ ranks[i].counts[kind]) * 0x9e3779b97f4a7c15ull + i;
		comm->uneven |= ranks[i].missing ||
		                memcmp(ranks[i].counts, ranks[0].counts, sizeof(ranks[0].counts));
	}
	if (counts != comm->counts || !comm->since_ns)
		comm->since_ns = now_ns;
	comm->counts = counts;
}

/*
 * Ranks of a communicator that stands still have mostly waited since before there was a recording,
 * and nobody knows where: their first threads are nudged, once. One that an agent is just brought
 * into has another tracer, and its turn after a later answer. With the lock, which is let go of
 * meanwhile.
 */
static void nudge_standing(struct ranks_feed *feed, const struct heard *heard)
{
	const struct ras_answer *answer = heard->answer;
	struct nudged all[NUDGE_MOST];
	size_t n_all = 0;

	for (size_t i = 0, n; i < answer->n; i += n) {
		struct known_comm *comm;

		n = same_comm(answer, i);
		comm = member_of(heard, i, n) ? comm_of(feed, heard->person, &answer->ranks[i])
		                              : NULL;
		if (!comm)
			continue;
		comm_judge(comm, &answer->ranks[i], n, answer->answered_ns);
		if (!comm->uneven || answer->answered_ns - comm->since_ns < STANDING_NS)
			continue;
		for (size_t k = i; k < i + n && n_all < NUDGE_MOST; k++) {
			const struct known_rank *process = process_of(heard, &answer->ranks[k]);

			if (process && !process->nudged)
				all[n_all++] = (struct nudged){
					.pid = (pid_t)process->pid,
					.start_time = process->start_time,
				};
		}
	}
	pthread_mutex_unlock(&feed->lock);
	if (n_all)
		nudge_processes(all, n_all);
	pthread_mutex_lock(&feed->lock);
	for (size_t i = 0; i < n_all; i++) {
		struct known_rank *process = ranks_process_find(feed, (uint32_t)all[i].pid);

		if (process && process->start_time == all[i].start_time)
			process->nudged |= all[i].done;
	}
}

/* In its network, if that is still the one that it had. Without the lock. */
static int ask(const struct ranks_feed *feed, const struct known_rank *asked,
               struct ras_answer *answer)
{
	AT_END(at_end_close)
	int network = helper_open_namespace((pid_t)asked->pid, "net", asked->person);
	struct err err = { 0 };
	struct stat st;

	if (network < 0)
		return -ESRCH;
	if (file_stat(network, &st) || st.st_ino != asked->space)
		return -ESRCH;
	return ras_ask(network, asked->port, asked->user, &feed->stop, answer, &err);
}

static void not_there(struct ranks_feed *feed, const struct known_rank *asked)
{
	struct known_rank *process = ranks_process_find(feed, asked->pid);

	if (process && process->start_time == asked->start_time && kill((pid_t)asked->pid, 0) &&
	    errno == ESRCH)
		ranks_be_gone(feed, process);
}

/* A port in a network that was asked in one round; `refused`: it is not this user's. */
struct asked_place {
	uint64_t where;
	uid_t user;
	bool refused;
};

static bool was_asked(const struct asked_place *places, size_t n, const struct known_rank *process)
{
	for (size_t i = 0; i < n; i++)
		if (places[i].where == ranks_where(process) &&
		    (!places[i].refused || places[i].user == process->user))
			return true;
	return false;
}

/* One process of each namespace and port, of the user who listens there. With the lock, which is
 * let go of meanwhile. */
void ranks_ask_all(struct ranks_feed *feed, bool far)
{
	struct quota of_spaces = { .user = { SPACES_USER },
		                   .others = { SPACES_OTHERS },
		                   .all = { SPACES_MAX } };
	struct asked_place places[SPACES_MAX];
	size_t n = 0;

	look_at_new(feed);
	for (size_t i = 0; i < feed->n_processes && !feed->stop; i++) {
		const struct known_rank asked = feed->processes[i];
		bool is_new = asked.space && !asked.gone && !is_silent(feed, &asked);
		uint64_t begin_ns = clock_now_ns();
		struct known_rank *process;
		struct ras_answer answer;
		struct heard heard;

		if (!is_new || was_asked(places, n, &asked))
			continue;
		if (quota_take(&of_spaces, asked.person, 0, 1)) {
			feed->left.asked += asked.n_handles != 0;
			continue;
		}
		pthread_mutex_unlock(&feed->lock);

		int rc = ask(feed, &asked, &answer);

		pthread_mutex_lock(&feed->lock);
		if (rc == -ESRCH) { /* it is not there: another one of its network is asked */
			not_there(feed, &asked);
			quota_give(&of_spaces, asked.person, 0, 1);
			continue;
		}
		places[n++] = (struct asked_place){ ranks_where(&asked), asked.user, rc == -EPERM };
		waited_for(feed, &asked, begin_ns, rc);
		if (rc)
			continue;
		feed->answered = true;
		heard_begin(&heard, feed, &asked, &answer);
		/* also at the first that says anything: on a busy machine that is no early one */
		process = ranks_process_find(feed, asked.pid);
		if (take_answer(feed, &heard, far || !process || !process->far) && process)
			process->far = true;
		nudge_standing(feed, &heard);
		ras_answer_free(&answer);
	}
	quota_free(&of_spaces);
}
