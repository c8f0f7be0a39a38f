// SPDX-License-Identifier: MIT
#include "capture/ranks_inside.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/at_end.h"
#include "base/clock.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/person.h"

#define PROCESSES_USER   256
#define PROCESSES_OTHERS 768
#define USERS_MAX        256   /* but root, whose doings are counted apart; others are left alone */
#define TOLD_MAX         65536 /* of what is passed on, that waits */
#define TOLD_USER        16384
#define COMMS_MAX        256 /* communicators of which it is known whether they move */
#define COMMS_USER       64
#define SETTLE_NS        500000000ull

/* When it is asked, since there was a process to ask about: often in the beginning, as each answer
 * tells a little more exactly which collective was which. */
static const uint64_t ask_ns[] = { 100000000,  170000000,  290000000,  410000000,
	                           570000000,  790000000,  1100000000, 1500000000,
	                           2300000000, 4000000000, 8000000000, 16000000000 };
#define ASKS (sizeof(ask_ns) / sizeof(ask_ns[0]))

/* ---- what it holds -------------------------------------------------------------------------- */

void ranks_tell(struct ranks_feed *feed, const struct ranks_told *told)
{
	if (quota_take(&feed->of_told, told->person, 0, 1)) {
		feed->left.rows++;
		return;
	}
	feed->told = vec_room(feed->told, feed->n_told, sizeof(*feed->told));
	feed->told[feed->n_told++] = *told;
}

struct known_rank *ranks_process_find(struct ranks_feed *feed, uint32_t pid)
{
	for (size_t i = 0; i < feed->n_processes; i++)
		if (feed->processes[i].pid == pid && !feed->processes[i].gone)
			return &feed->processes[i];
	return NULL;
}

void ranks_be_gone(struct ranks_feed *feed, struct known_rank *process)
{
	if (!process->gone)
		quota_give(&feed->of_processes, process->person, 0, 1);
	for (unsigned i = 0; i < process->n_handles; i++)
		process->handles[i]->dead = true;
	process->n_handles = 0;
	process->gone = true;
}

struct known_user *ranks_user_of(struct ranks_feed *feed, uint64_t person)
{
	for (size_t i = 0; person && i < feed->n_users; i++)
		if (feed->users[i].person == person)
			return &feed->users[i];
	if (!person || feed->n_users >= USERS_MAX)
		return NULL;
	feed->users = vec_room(feed->users, feed->n_users, sizeof(*feed->users));
	feed->users[feed->n_users] = (struct known_user){ .person = person };
	return &feed->users[feed->n_users++];
}

/* ---- on its thread --------------------------------------------------------------------------- */

static void wait_until(struct ranks_feed *feed, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
		                        .tv_nsec = (long)(until_ns % 1000000000) };

	if (until_ns == UINT64_MAX)
		pthread_cond_wait(&feed->wake, &feed->lock);
	else
		pthread_cond_timedwait(&feed->wake, &feed->lock, &until);
}

static void *ranks_run(void *data)
{
	struct ranks_feed *feed = data;

	pthread_mutex_lock(&feed->lock);
	while (!feed->stop) {
		uint64_t due_ns = !feed->since_ns || feed->asks == ASKS
		                          ? UINT64_MAX
		                          : feed->since_ns + ask_ns[feed->asks];

		if (feed->settle || due_ns <= clock_now_ns()) {
			bool far = feed->settle || !feed->asks;

			feed->asks += feed->asks < ASKS && !feed->settle;
			ranks_ask_all(feed, far);
			ranks_find_handles(feed);
			feed->settle = false;
			pthread_cond_broadcast(&feed->wake);
		} else if (feed->unfound && feed->answered) {
			feed->unfound = 0;
			ranks_find_handles(feed);
		} else {
			wait_until(feed, due_ns);
		}
	}
	pthread_mutex_unlock(&feed->lock);
	return NULL;
}

/* ---- on the main loop ------------------------------------------------------------------------ */

static void function_make(struct function *function, struct api **made, const char *name,
                          const char *arguments)
{
	const struct api_text text = { .name = name, .spec = arguments, .cls = CLASS_OTHER };

	*function = (struct function){ .name = name,
		                       .lib = "NCCL's RAS",
		                       .layer = LAYER_HOOK,
		                       .cls = CLASS_OTHER,
		                       .api = api_from_text(&text, made) };
}

struct ranks_feed *ranks_feed_new(void)
{
	struct ranks_feed *feed = xcalloc(1, sizeof(*feed));
	pthread_condattr_t by_clock;
	sigset_t all, before;

	feed->of_processes = (struct quota){ .user = { PROCESSES_USER },
		                             .others = { PROCESSES_OTHERS },
		                             .all = { PROCESSES_MAX } };
	feed->of_told = (struct quota){ .user = { TOLD_USER }, .all = { TOLD_MAX } };
	feed->of_comms = (struct quota){ .user = { COMMS_USER }, .all = { COMMS_MAX } };
	function_make(&feed->comm, &feed->made[0], "ras.communicator",
	              "comm:addr id:addr id2:addr rank:int ranks:int");
	function_make(&feed->rank, &feed->made[1], "ras.rank",
	              "id:addr id2:addr rank:int ranks:int pid:int state:int AllReduce:u64 "
	              "ReduceScatter:u64 AllGather:u64 Broadcast:u64 Reduce:u64 host:string");
	pthread_mutex_init(&feed->lock, NULL);
	pthread_condattr_init(&by_clock);
	pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
	pthread_cond_init(&feed->wake, &by_clock);
	pthread_condattr_destroy(&by_clock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	feed->running = !pthread_create(&feed->thread, NULL, ranks_run, feed);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return feed;
}

void ranks_feed_free(struct ranks_feed *feed)
{
	if (!feed)
		return;
	pthread_mutex_lock(&feed->lock);
	__atomic_store_n(&feed->stop, true, __ATOMIC_RELAXED); /* an answer is waited for */
	pthread_cond_broadcast(&feed->wake);
	pthread_mutex_unlock(&feed->lock);
	if (feed->running)
		pthread_join(feed->thread, NULL);
	process_reader_free(feed->reader);
	MAP_FREE(feed->handles, free);
	pthread_cond_destroy(&feed->wake);
	pthread_mutex_destroy(&feed->lock);
	for (size_t i = 0; i < 2; i++)
		api_free(feed->made[i]);
	for (size_t i = 0; i < feed->n_processes; i++)
		free(feed->processes[i].ranks);
	free(feed->processes);
	free(feed->users);
	quota_free(&feed->of_processes);
	quota_free(&feed->of_comms);
	quota_free(&feed->of_told);
	accounts_free(&feed->waited);
	free(feed->told);
	free(feed->comms);
	free(feed);
}

/* A place: of one that has ended, or a new one. NULL: there is no room. */
static struct known_rank *place_for(struct ranks_feed *feed, uint64_t person)
{
	struct known_rank *place = NULL;

	if (quota_refuses(&feed->of_processes, person, 0, 1))
		for (size_t i = 0; i < feed->n_processes; i++)
			if (kill((pid_t)feed->processes[i].pid, 0) && errno == ESRCH)
				ranks_be_gone(feed, &feed->processes[i]);
	if (quota_take(&feed->of_processes, person, 0, 1))
		return NULL;
	for (size_t i = 0; i < feed->n_processes && !place; i++)
		place = feed->processes[i].gone ? &feed->processes[i] : NULL;
	if (place) {
		free(place->ranks);
		return place;
	}
	feed->processes = vec_room(feed->processes, feed->n_processes, sizeof(*feed->processes));
	return &feed->processes[feed->n_processes++];
}

void ranks_feed_process(struct ranks_feed *feed, const struct process *process)
{
	uint64_t person = helper_person_of((pid_t)process->pid);
	struct known_rank *place;

	LOCKED(&feed->lock);
	place = ranks_process_find(feed, process->pid);
	if (place) /* of another one that had the number */
		ranks_be_gone(feed, place);
	place = person == PERSON_UNKNOWN ? NULL : place_for(feed, person);
	if (!place)
		return;
	*place = (struct known_rank){ .pid = process->pid, .person = person };
	if (!feed->since_ns)
		feed->since_ns = clock_now_ns();
	pthread_cond_broadcast(&feed->wake);
}

/* The argument of that name; 0: it has none. */
static uint64_t handle_in(const struct call *call)
{
	const struct api_arg *args;
	size_t n = call->function->api ? api_args(call->function->api, &args) : 0;

	for (size_t i = 0; i < n && i < call->args.n_args; i++)
		if (!strcmp(args[i].name, "comm"))
			return call->args.arg[i];
	return 0;
}

void ranks_feed_call(struct ranks_feed *feed, uint32_t pid, const struct call *call)
{
	const struct handle_key key = { handle_in(call), pid, 0 };
	struct known_rank *process;
	struct known_handle *handle;

	if (!key.handle || strncmp(call->function->name, "nccl.", 5) != 0)
		return;
	LOCKED(&feed->lock);
	handle = MAP_FIND(feed->handles, &key);
	if (handle && !handle->dead)
		return;
	process = ranks_process_find(feed, pid);
	if (!process || process->n_handles >= HANDLES_EACH) {
		feed->left.handles += process || feed->of_processes.refused;
		return;
	}
	if (!handle)
		handle = MAP_ADD(feed->handles, key, &key);
	handle->dead = handle->found = false;
	handle->tries = 0;
	process->handles[process->n_handles++] = handle;
	feed->unfound++;
	pthread_cond_broadcast(&feed->wake);
}

void ranks_feed_settle(struct ranks_feed *feed)
{
	uint64_t until_ns = clock_now_ns() + SETTLE_NS;

	LOCKED(&feed->lock);
	if (!feed->answered || !feed->running)
		return;
	feed->settle = true;
	pthread_cond_broadcast(&feed->wake);
	while (feed->settle && clock_now_ns() < until_ns)
		wait_until(feed, until_ns);
}

void ranks_feed_again(struct ranks_feed *feed)
{
	LOCKED(&feed->lock);
	if (!feed->since_ns || feed->asks < ASKS)
		return;
	feed->since_ns = clock_now_ns();
	feed->asks = 0;
	pthread_cond_broadcast(&feed->wake);
}

static void args_of(const struct ranks_told *told, struct call *call)
{
	const struct ras_rank *rank = &told->rank;
	const uint64_t id2 = rank->host_hash ^ (rank->pid_hash << 1 | rank->pid_hash >> 63);
	const uint64_t values[] = { rank->hash,
		                    id2,
		                    (uint64_t)(int64_t)rank->rank,
		                    rank->size,
		                    told->own ? told->pid : 0,
		                    (uint64_t)rank->missing | (uint64_t)rank->failed << 1,
		                    rank->counts[RAS_ALL_REDUCE],
		                    rank->counts[RAS_REDUCE_SCATTER],
		                    rank->counts[RAS_ALL_GATHER],
		                    rank->counts[RAS_BROADCAST],
		                    rank->counts[RAS_REDUCE] };
	struct api_call *args = &call->args;

	if (told->handle) {
		args->arg[0] = told->handle;
		memcpy(args->arg + 1, values, 4 * sizeof(values[0]));
		args->n_args = 5;
		return;
	}
	memcpy(args->arg, values, sizeof(values));
	args->n_args = 12;
	call->text = rank->host;
}

static int pass_on(struct ranks_feed *feed, struct pipeline *pipeline,
                   const struct ranks_told *told, struct err *err)
{
	const struct process *process = pipeline_process_known(pipeline, told->pid);
	struct call call = { .function = told->handle ? &feed->comm : &feed->rank,
		             .begin_ns = told->begin_ns,
		             .end_ns = told->end_ns };
	const struct event event = { .type = EVENT_OTHER_CALL,
		                     .time_ns = told->end_ns,
		                     .process = process,
		                     .tid = told->pid,
		                     .call = &call };

	if (!process)
		return 0;
	args_of(told, &call);
	return pipeline_pass(pipeline, &event, err);
}

int ranks_feed_turn(struct ranks_feed *feed, struct pipeline *pipeline, struct err *err)
{
	AT_END(at_end_free) struct ranks_told *told = NULL;
	size_t n;
	int rc = 0;

	pthread_mutex_lock(&feed->lock);
	told = feed->told;
	n = feed->n_told;
	feed->told = NULL;
	feed->n_told = 0;
	quota_free(&feed->of_told);
	pthread_mutex_unlock(&feed->lock);
	if (n && !feed->numbered) {
		feed->comm.id = pipeline_function_number(pipeline);
		feed->rank.id = pipeline_function_number(pipeline);
		feed->numbered = true;
	}
	for (size_t i = 0; i < n && !rc; i++)
		rc = pass_on(feed, pipeline, &told[i], err);
	return rc;
}

static void add_left(struct buf *out, uint64_t n, const char *what)
{
	if (n)
		buf_printf(out, "%s%lu %s", out->len ? ", " : "", n, what);
}

void ranks_feed_left(struct ranks_feed *feed, struct buf *out)
{
	struct ranks_left left;

	pthread_mutex_lock(&feed->lock);
	left = feed->left;
	pthread_mutex_unlock(&feed->lock);
	add_left(out, left.rows, "rows of what it said");
	add_left(out, left.ranks, "ranks of processes that have more than 64");
	add_left(out, left.far, "ranks elsewhere");
	add_left(out, left.cut, "answers to their ends");
	add_left(out, left.asked, "questions");
	add_left(out, left.handles, "calls of further communicators");
	add_left(out, left.looks, "looks for communicators in memory");
}
