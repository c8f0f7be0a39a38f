// SPDX-License-Identifier: MIT
#include "capture/who_feed.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/quota.h"
#include "base/xalloc.h"
#include "identity/process_identities.h"

#define TURN_NS       100000000ull
#define TRIES         50 /* turns in which it is asked for: what is not known by then is not known */
#define TRIES_END     3  /* the same of one that has ended: a read may be under way */
#define HELD_MS       20           /* a read takes 0.1 to 0.5 ms */
#define HELD_MOST     64           /* programs whose identity is kept until they are met */
#define HELD_IDS      (1ull << 32) /* incarnations that no process has */
#define ASKS_MOST     256 /* processes that are asked for at a time: the reader forgets the oldest */
#define OF_USER(most) ((most) / 4 * 3) /* of one user but root */

struct asked {
	uint32_t pid, incarnation;
	uint64_t person;
	size_t at; /* of its identity */
	unsigned tries;
};

/* A program that had not made its first step, with its number. */
struct held {
	uint64_t time_ns;
	struct run_identity who;
};

struct who_feed {
	struct process_identities *identities;
	bool command, newest;
	struct run_identity *all; /* RUN_IDENTITIES_MAX */
	uint64_t *person;         /* whose each of them is */
	size_t n;
	struct quota of_all, of_asked;
	uint64_t left_out, turn_ns;
	struct asked asked[ASKS_MOST];
	size_t n_asked;
	pthread_mutex_t lock; /* of these */
	struct held held[HELD_MOST];
	uint64_t n_held;
};

struct who_feed *who_feed_new(bool command, bool newest)
{
	const struct process_identities_options options = { .most = ASKS_MOST };
	struct process_identities *identities = process_identities_new(&options, NULL);
	struct who_feed *feed;

	if (!identities)
		return NULL;
	feed = xcalloc(1, sizeof(*feed));
	feed->identities = identities;
	feed->command = command;
	feed->newest = newest;
	pthread_mutex_init(&feed->lock, NULL);
	feed->all = xcalloc(RUN_IDENTITIES_MAX, sizeof(*feed->all));
	feed->person = xcalloc(RUN_IDENTITIES_MAX, sizeof(*feed->person));
	feed->of_all.user.most = OF_USER(RUN_IDENTITIES_MAX);
	feed->of_asked.user.most = OF_USER(ASKS_MOST);
	return feed;
}

void who_feed_free(struct who_feed *feed)
{
	if (!feed)
		return;
	process_identities_free(feed->identities);
	for (size_t i = 0; i < feed->n; i++)
		run_identity_clear(&feed->all[i]);
	for (size_t i = 0; i < HELD_MOST; i++)
		run_identity_clear(&feed->held[i].who);
	pthread_mutex_destroy(&feed->lock);
	quota_free(&feed->of_all);
	quota_free(&feed->of_asked);
	free(feed->person);
	free(feed->all);
	free(feed);
}

/* ---- what is kept of an identity ------------------------------------------------------------ */

static void keep_word(struct run_identity *to, enum run_identity_word word, const char *text,
                      bool own_word)
{
	if (!*text)
		return;
	to->words[word] = xstrdup(text);
	if (own_word)
		to->own_word |= 1u << word;
}

static void keep(struct run_identity *to, const struct process_identity *who)
{
	char container[IDENTITY_ID];
	bool own_container = who->container_by == IDENTITY_OWN_WORD;
	bool own_pod = who->pod_by == IDENTITY_OWN_WORD;
	bool own_job = who->slurm_by == IDENTITY_OWN_WORD;

	run_identity_clear(to);
	process_labels_container(who, container);
	keep_word(to, RUN_IDENTITY_USER, who->user, false);
	keep_word(to, RUN_IDENTITY_CONTAINER, container, own_container);
	keep_word(to, RUN_IDENTITY_POD, who->pod, own_pod);
	keep_word(to, RUN_IDENTITY_NAMESPACE, who->namespace, own_pod);
	keep_word(to, RUN_IDENTITY_JOB, who->slurm_job, own_job);
	keep_word(to, RUN_IDENTITY_STEP, who->slurm_step, own_job);
	keep_word(to, RUN_IDENTITY_RANK, who->rank, true);
	keep_word(to, RUN_IDENTITY_LOCAL_RANK, who->local_rank, true);
	keep_word(to, RUN_IDENTITY_WORLD_SIZE, who->world_size, true);
	keep_word(to, RUN_IDENTITY_COMMAND, who->command, true);
	keep_word(to, RUN_IDENTITY_UNIT, who->unit, false);
}

/* ---- programs that wait --------------------------------------------------------------------- */

void who_feed_held(struct who_feed *feed, pid_t pid, uint64_t now_ns)
{
	struct process_identity who;
	struct held *held;
	uint64_t number;

	pthread_mutex_lock(&feed->lock);
	number = feed->n_held++;
	pthread_mutex_unlock(&feed->lock);
	if (!process_identities_get_soon(feed->identities, pid, HELD_IDS + number, HELD_MS, &who))
		return;
	LOCKED(&feed->lock);
	held = &feed->held[number % HELD_MOST];
	keep(&held->who, &who);
	held->who.pid = (uint32_t)pid;
	held->time_ns = now_ns;
}

/* Whether the process with this number was another program's between the two. */
static bool has_changed(const struct who_feed *feed, uint32_t pid, uint64_t after_ns,
                        uint64_t until_ns)
{
	for (size_t i = 0; i < feed->n; i++) {
		if (feed->all[i].pid == pid && feed->all[i].since_ns > after_ns &&
		    feed->all[i].since_ns <= until_ns)
			return true;
	}
	return false;
}

/*
 * Of a program the first that is known is its exec, just before it waits for us; or a call, after
 * that. What began as another program in between has nothing to do with it.
 */
static bool is_of(const struct who_feed *feed, const struct held *held,
                  const struct run_identity *met)
{
	if (held->who.pid != met->pid)
		return false;
	return held->time_ns >= met->since_ns
	               ? !has_changed(feed, met->pid, met->since_ns, held->time_ns)
	               : !has_changed(feed, met->pid, held->time_ns, met->since_ns - 1);
}

/* What nobody could be asked for any more. */
static void take_held(struct who_feed *feed, struct run_identity *met)
{
	struct held *best = NULL;

	for (size_t i = 0; i < RUN_IDENTITY_WORDS; i++) {
		if (met->words[i])
			return;
	}
	LOCKED(&feed->lock);
	for (size_t i = 0; i < HELD_MOST; i++) {
		struct held *held = &feed->held[i];

		if (is_of(feed, held, met) && (!best || held->time_ns > best->time_ns))
			best = held;
	}
	if (best) {
		memcpy(met->words, best->who.words, sizeof(met->words));
		met->own_word = best->who.own_word;
		memset(&best->who, 0, sizeof(best->who));
	}
}

/* ---- asking --------------------------------------------------------------------------------- */

/* False: it is not known yet. Else its place with the reader is for others, who wait for one. */
static bool take(struct who_feed *feed, const struct asked *asked)
{
	struct process_identity who;

	if (!process_identities_get(feed->identities, (pid_t)asked->pid, asked->incarnation, &who))
		return false;
	process_identities_end(feed->identities, (pid_t)asked->pid, asked->incarnation, &who);
	keep(&feed->all[asked->at], &who);
	return true;
}

static bool has_ended(uint32_t pid)
{
	return kill((pid_t)pid, 0) && errno == ESRCH;
}

static void drop(struct who_feed *feed, size_t at)
{
	size_t left = 0;

	run_identity_clear(&feed->all[at]);
	quota_give(&feed->of_all, feed->person[at], 0, 1);
	memmove(&feed->all[at], &feed->all[at + 1], (--feed->n - at) * sizeof(*feed->all));
	memmove(&feed->person[at], &feed->person[at + 1], (feed->n - at) * sizeof(*feed->person));
	for (size_t i = 0; i < feed->n_asked; i++) {
		struct asked asked = feed->asked[i];

		if (asked.at == at) {
			quota_give(&feed->of_asked, asked.person, 0, 1);
			continue;
		}
		asked.at -= asked.at > at;
		feed->asked[left++] = asked;
	}
	feed->n_asked = left;
}

/* Of those that have ended, who was met first gives way: of this user's, where he has his share. */
static bool make_room(struct who_feed *feed, uint64_t person)
{
	bool own = quota_refuses(&feed->of_all, person, 0, 1);

	if (!own && feed->n < RUN_IDENTITIES_MAX)
		return true;
	for (size_t i = 0; i < feed->n && feed->newest; i++) {
		if ((own && feed->person[i] != person) || !has_ended(feed->all[i].pid))
			continue;
		drop(feed, i);
		return true;
	}
	return false;
}

/* It is not to be taken for who had its number before: rather nothing is known of either. */
static void leave_out(struct who_feed *feed, uint32_t pid)
{
	feed->left_out++;
	for (size_t i = 0; i < feed->n; i++) {
		if (feed->all[i].pid == pid)
			run_identity_clear(&feed->all[i]);
	}
}

void who_feed_process(struct who_feed *feed, const struct process *process, uint64_t now_ns)
{
	struct asked asked = { process->pid, process->id, process->person, 0, 0 };

	if (!process->pid) /* all others in one */
		return;
	if (feed->n_asked == ASKS_MOST || quota_refuses(&feed->of_asked, process->person, 0, 1) ||
	    !make_room(feed, process->person)) {
		leave_out(feed, process->pid);
		return;
	}
	asked.at = feed->n;
	feed->person[feed->n] = process->person;
	quota_add(&feed->of_all, process->person, 0, 1);
	feed->all[feed->n++] = (struct run_identity){ .pid = process->pid,
		                                      .since_ns = now_ns,
		                                      .memory_whole = feed->command };
	if (take(feed, &asked))
		return;
	quota_add(&feed->of_asked, asked.person, 0, 1);
	feed->asked[feed->n_asked++] = asked;
}

/* Its place with the reader is for others. */
static void give_up(struct who_feed *feed, const struct asked *asked)
{
	struct process_identity who;

	if (process_identities_end(feed->identities, (pid_t)asked->pid, asked->incarnation, &who))
		keep(&feed->all[asked->at], &who);
	else
		take_held(feed, &feed->all[asked->at]);
}

static void ask_again(struct who_feed *feed)
{
	size_t left = 0;

	for (size_t i = 0; i < feed->n_asked; i++) {
		struct asked *asked = &feed->asked[i];
		bool known = take(feed, asked);

		if (!known && ++asked->tries < (has_ended(asked->pid) ? TRIES_END : TRIES)) {
			feed->asked[left++] = *asked;
			continue;
		}
		if (!known)
			give_up(feed, asked);
		quota_give(&feed->of_asked, asked->person, 0, 1);
	}
	feed->n_asked = left;
}

void who_feed_turn(struct who_feed *feed, uint64_t now_ns)
{
	if (!feed->n_asked || now_ns < feed->turn_ns + TURN_NS)
		return;
	feed->turn_ns = now_ns;
	ask_again(feed);
}

/* Who is not told of before it has memory had none, since the reading came later than it. */
static void take_none(struct who_feed *feed, const struct gpus_sample *sample)
{
	for (size_t i = 0; i < feed->n; i++) {
		struct run_identity *one = &feed->all[i];

		if (!one->memory[RUN_MEMORY_FIRST].time_ns && one->since_ns < sample->read_ns &&
		    gpus_process_bytes(sample, one->pid) == GPU_UNKNOWN)
			one->memory_whole = true;
	}
}

static void take_memory(struct run_identity *one, const struct run_memory *memory)
{
	struct run_memory *kept = one->memory;

	if (memory->time_ns < one->since_ns) /* of whoever had the number before */
		return;
	if (!kept[RUN_MEMORY_FIRST].time_ns)
		kept[RUN_MEMORY_FIRST] = *memory;
	if (!kept[RUN_MEMORY_MOST].time_ns || memory->bytes > kept[RUN_MEMORY_MOST].bytes)
		kept[RUN_MEMORY_MOST] = *memory;
	kept[RUN_MEMORY_LAST] = *memory;
}

/* The last that had the number has it now. */
static void take_process(struct who_feed *feed, const struct gpu_process *process, uint64_t read_ns)
{
	const struct run_memory memory = { read_ns, process->bytes };

	for (size_t i = feed->n; i-- > 0;) {
		if (feed->all[i].pid != process->pid)
			continue;
		feed->all[i].gpus |= process->gpus;
		take_memory(&feed->all[i], &memory);
		return;
	}
}

void who_feed_gpus(struct who_feed *feed, const struct gpus_sample *sample)
{
	if (sample->read_ns && !sample->processes_cut)
		take_none(feed, sample);
	for (size_t i = 0; i < sample->n_processes; i++)
		take_process(feed, &sample->processes[i], sample->read_ns);
}

void who_feed_fill(struct who_feed *feed, struct run_info *run)
{
	ask_again(feed);
	for (size_t i = 0; i < feed->n_asked; i++)
		take_held(feed, &feed->all[feed->asked[i].at]);
	run->identities = feed->all;
	run->n_identities = feed->n;
	run->identities_left_out = feed->left_out;
}
