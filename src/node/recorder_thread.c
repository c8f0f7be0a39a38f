// SPDX-License-Identifier: MIT
/* The thread of the flight recorder. */
#include "node/recorder_inside.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/account.h"
#include "probe/person.h"

/* ---- recorder orders ----------------------------------------------------------------------- */

/* Of the flight recorder: recordings, from the rule that fired to what came of them. */

#define ANSWER_NS 90000000000ull /* within which a recording is written */

/* ---- what comes of them -------------------------------------------------------------------- */

static void orders_answer(struct recorder *recorder, uint64_t number, enum recorder_answer answer,
                          const char *text)
{
	LOCKED(&recorder->lock);
	for (size_t i = 0; i < REQUESTS_MAX; i++) {
		struct request *request = &recorder->requests[i];

		if (!number || request->number != number)
			continue;
		request->answer = answer;
		snprintf(request->text, sizeof(request->text), "%s", text);
	}
}

static void orders_failed(struct recorder *recorder, enum rule rule, uint64_t request,
                          enum recorder_why why, const char *text)
{
	pthread_mutex_lock(&recorder->lock);
	recorder->figures.failed[why]++;
	pthread_mutex_unlock(&recorder->lock);
	recorder_say(recorder, "recorder: nothing was written for the rule %s: %s", rule_name(rule),
	             text);
	orders_answer(recorder, request, RECORDER_FAILED, text);
}

static void drop_first(struct recorder *recorder)
{
	recorder->n_orders--;
	memmove(recorder->orders, recorder->orders + 1,
	        recorder->n_orders * sizeof(*recorder->orders));
	recorder->sent_ns = 0;
}

static void recorder_saved(struct recorder *recorder, const struct recorder_message *message)
{
	const struct recorder_saved *saved = &message->saved;
	struct order *order = recorder->orders;

	if (!recorder->sent_ns || saved->ticket != order->save.ticket ||
	    saved->why >= RECORDER_WHY_COUNT) /* one that was given up */
		return;
	if (saved->why) {
		orders_failed(recorder, order->save.rule, order->request, saved->why,
		              message->text);
	} else {
		pthread_mutex_lock(&recorder->lock);
		recorder->figures.written[order->save.rule]++;
		pthread_mutex_unlock(&recorder->lock);
		recorder_say(recorder, "recorder: %s/%s: %llu events; %s", recorder->path,
		             saved->name, (unsigned long long)saved->events, order->save.reason);
		orders_answer(recorder, order->request, RECORDER_WRITTEN, saved->name);
	}
	recorder->looked_ns = 0; /* the spool is another one now */
	drop_first(recorder);
}

/* The process that had the first order has ended. */
static void recorder_orders_lost(struct recorder *recorder)
{
	if (!recorder->sent_ns)
		return;
	orders_failed(recorder, recorder->orders->save.rule, recorder->orders->request,
	              RECORDER_CRASHED, "the process that records has ended");
	drop_first(recorder);
}

/* ---- what fires ---------------------------------------------------------------------------- */

static void hold_back(struct recorder *recorder, enum rules_verdict verdict, uint64_t request,
                      uint64_t wait_ns)
{
	char text[128];

	snprintf(text, sizeof(text), "not before %llu s have gone by (%s)",
	         (unsigned long long)(wait_ns / 1000000000 + 1), rules_verdict_name(verdict));
	pthread_mutex_lock(&recorder->lock);
	recorder->figures.held_back[verdict]++;
	pthread_mutex_unlock(&recorder->lock);
	orders_answer(recorder, request, RECORDER_REFUSED, text);
}

/* recorder_thread.c: what is to be written, in its order. */
static void recorder_fired(struct recorder *recorder, enum rule rule, uint64_t person,
                           const char *why, uint64_t last_ns, uint64_t request, uint64_t now_ns)
{
	struct order *order = &recorder->orders[recorder->n_orders];
	uint64_t wait_ns;
	enum rules_verdict verdict = rules_allow(recorder->rules, rule, person, now_ns, &wait_ns);

	if (verdict != RULES_ALLOWED) {
		hold_back(recorder, verdict, request, wait_ns);
		return;
	}
	if (recorder->current < 0 || recorder->n_orders == ORDERS_MAX) {
		rules_take_back(recorder->rules);
		orders_failed(recorder, rule, request,
		              recorder->current < 0 ? RECORDER_NOT_RUNNING : RECORDER_BUSY,
		              recorder->current < 0 ? "calls are not being recorded at the moment"
		                                    : "other recordings wait to be written");
		return;
	}
	memset(order, 0, sizeof(*order));
	order->request = request;
	order->due_ns = now_ns + (rule == RULE_REQUEST ? 0 : recorder->settings.after_ns);
	order->save.ticket = ++recorder->tickets;
	order->save.last_ns = last_ns;
	order->save.rule = rule;
	snprintf(order->save.reason, sizeof(order->save.reason), "%s: %s", rule_name(rule), why);
	recorder->n_orders++;
	recorder_gpu_begin(recorder, &order->save, now_ns);
}

/* One at a time. */
static void recorder_orders_turn(struct recorder *recorder, uint64_t now_ns)
{
	struct recorder_message message = { .kind = RECORDER_SAVE };
	const struct order *first = recorder->orders;

	if (recorder->sent_ns && now_ns - recorder->sent_ns > ANSWER_NS) {
		orders_failed(recorder, first->save.rule, first->request, RECORDER_TIMEOUT,
		              "the disk of the spool does not answer");
		drop_first(recorder);
	}
	if (!recorder->n_orders || recorder->sent_ns || first->due_ns > now_ns)
		return;
	if (recorder->current < 0) {
		orders_failed(recorder, first->save.rule, first->request, RECORDER_NOT_RUNNING,
		              "calls are not being recorded at the moment");
		drop_first(recorder);
		return;
	}
	message.save = first->save;
	if (!recorder_send(recorder->children[recorder->current].worker.socket, &message))
		recorder->sent_ns = now_ns;
}

/* ---- recorder thread ----------------------------------------------------------------------- */

#define TURN_MS       100
#define LOOK_NS       10000000000ull  /* between two looks at the spool */
#define PAUSE_LEAST   1000000000ull   /* before a process that ended is started again, doubled */
#define PAUSE_MOST    300000000000ull /* up to this */
#define WELL_AFTER_NS 60000000000ull  /* one that ran for so long was no failure */
#define RENEW_LEAST   60000000000ull  /* between two that replace each other */

/*
 * What a capture knows of processes that ended has a bound (32,768, then they are one), and what
 * the window refers to is never dropped. Before that, another process takes over.
 */
#define PROCESSES_MOST 16384

/* ---- the processes that record ------------------------------------------------------------- */

static int free_slot(const struct recorder *recorder)
{
	for (int i = 0; i < CHILDREN_MAX; i++) {
		if (!recorder->children[i].worker.pid)
			return i;
	}
	return -1;
}

static void later(struct recorder *recorder, uint64_t now)
{
	recorder->pause_ns = recorder->pause_ns ? 2 * recorder->pause_ns : PAUSE_LEAST;
	if (recorder->pause_ns > PAUSE_MOST)
		recorder->pause_ns = PAUSE_MOST;
	recorder->start_at_ns = now + recorder->pause_ns;
}

static int start(struct recorder *recorder, uint64_t now)
{
	int slot = free_slot(recorder);
	struct err err = { 0 };

	if (slot < 0)
		return -1;
	if (recorder_child_start(&recorder->children[slot], &recorder->settings, recorder->spool,
	                         &err)) {
		recorder_say(recorder, "recorder: %s", err.text);
		later(recorder, now);
		return -1;
	}
	LOCKED(&recorder->lock);
	recorder->figures.starts++;
	return slot;
}

static void add_unmatched(struct recorder_state *sum, const struct recorder_state *state)
{
	for (int i = 0; i < RECORDER_UNMATCHED_COUNT; i++)
		sum->unmatched[i] += state->unmatched[i];
}

void recorder_remember(struct recorder *recorder, const struct recorder_state *state)
{
	recorder->before.events += state->events;
	recorder->before.lost += state->lost;
	recorder->before.left_out += state->left_out;
	recorder->before.cpu_ns += state->cpu_ns;
	recorder->before.steps_forgotten += state->steps_forgotten;
	add_unmatched(&recorder->before, state);
}

/* What is told of ranks from now on is another process's, which may know less of them. */
static void end_ranks(struct recorder *recorder, uint64_t now)
{
	LOCKED(&recorder->lock);
	for (size_t i = 0; i < recorder->n_ranks; i++) {
		recorder->ranks[i].rank.missing_ns = 0;
		recorder->ranks[i].ended_ns = now;
	}
}

/* It was not asked to. */
static void on_end(struct recorder *recorder, int slot, bool was_well, uint64_t now)
{
	if (slot == recorder->current) {
		recorder->current = -1;
		end_ranks(recorder, now);
		recorder_orders_lost(recorder);
	}
	if (slot == recorder->next)
		recorder->next = -1;
	if (was_well)
		recorder->pause_ns = 0;
	later(recorder, now);
	recorder_say(recorder,
	             "recorder: the process that records has ended; another one follows in %llu s",
	             (unsigned long long)(recorder->pause_ns / 1000000000));
}

static void look_at_child(struct recorder *recorder, int slot, uint64_t now)
{
	struct recorder_child *child = &recorder->children[slot];
	struct recorder_state state = child->state;
	bool asked = child->end_by_ns != 0;
	bool was_well = child->ready && now - child->ready_ns > WELL_AFTER_NS;

	if (!child->worker.pid || !recorder_child_ended(child, now))
		return;
	recorder_remember(recorder, &state);
	if (!asked)
		on_end(recorder, slot, was_well, now);
}

static bool is_worn(const struct recorder *recorder, const struct recorder_child *child,
                    uint64_t now)
{
	return (child->state.processes > PROCESSES_MOST ||
	        child->state.definition_bytes > recorder->settings.memory_bytes / 2) &&
	       now - child->ready_ns > RENEW_LEAST;
}

/* The next one takes over when it holds as much. */
static void renew(struct recorder *recorder, uint64_t now)
{
	struct recorder_child *next;

	if (recorder->current >= 0 && recorder->next < 0 &&
	    is_worn(recorder, &recorder->children[recorder->current], now) &&
	    now >= recorder->start_at_ns)
		recorder->next = start(recorder, now);
	if (recorder->next < 0)
		return;
	next = &recorder->children[recorder->next];
	if (!next->ready || recorder->sent_ns ||
	    (recorder->current >= 0 && now - next->ready_ns < recorder->settings.last_ns))
		return;
	if (recorder->current >= 0)
		recorder_child_stop(&recorder->children[recorder->current], now);
	end_ranks(recorder, now);
	recorder->current = recorder->next;
	recorder->next = -1;
}

static void keep_recording(struct recorder *recorder, uint64_t now)
{
	for (int i = 0; i < CHILDREN_MAX; i++)
		look_at_child(recorder, i, now);
	if (recorder->current < 0 && recorder->next < 0 && now >= recorder->start_at_ns)
		recorder->next = start(recorder, now);
	renew(recorder, now);
}

/* ---- ranks --------------------------------------------------------------------------------- */

#define RANK_STAYS_NS 60000000000ull /* after its end */

static const char *const unmatched_names[RECORDER_UNMATCHED_COUNT] = {
	[RECORDER_UNKNOWN_COMM] = "unknown",
	[RECORDER_UNCOUNTED] = "uncounted",
	[RECORDER_CALLS_LOST] = "lost",
	[RECORDER_UNLIKE] = "unlike",
};

const char *recorder_unmatched_name(enum recorder_unmatched why)
{
	return unmatched_names[why];
}

/* By what its labels are, so that no two series have the same; with the lock. NULL: no room. */
static struct recorder_rank_series *rank_series(struct recorder *recorder,
                                                const struct recorder_rank *rank)
{
	struct recorder_rank_series *series;
	uint64_t person;

	for (size_t i = 0; i < recorder->n_ranks; i++) {
		series = &recorder->ranks[i];
		if (series->rank.pid != rank->pid || series->rank.comm != rank->comm)
			continue;
		if (series->rank.number < 0) /* it was not known yet */
			series->rank.number = rank->number;
		if (series->rank.number == rank->number)
			return series;
	}
	person = person_of_process((pid_t)rank->pid);
	if (recorder->n_ranks == recorder->settings.rank_series ||
	    quota_take(&recorder->rank_shares, person, 0, 1))
		return NULL;
	series = &recorder->ranks[recorder->n_ranks++];
	*series = (struct recorder_rank_series){
		.rank = { .comm = rank->comm, .pid = rank->pid, .number = rank->number },
		.person = person,
		.created_ns = clock_of_ns(CLOCK_REALTIME),
	};
	memcpy(series->rank.process, rank->process, sizeof(rank->process));
	return series;
}

static void take_rank(struct recorder *recorder, const struct recorder_rank *rank, uint64_t now)
{
	struct recorder_rank_series *series;

	LOCKED(&recorder->lock);
	series = rank_series(recorder, rank);
	if (!series) {
		recorder->ranks_left_out++;
		return;
	}
	series->rank.n += rank->n;
	series->rank.n_last += rank->n_last;
	series->rank.late_ns += rank->late_ns;
	series->rank.waited_ns += rank->waited_ns;
	series->rank.missing_ns = rank->missing_ns;
	series->ended_ns = rank->ended ? now : 0;
}

static void forget_ranks(struct recorder *recorder, uint64_t now)
{
	LOCKED(&recorder->lock);
	for (size_t i = recorder->n_ranks; i-- > 0;) {
		struct recorder_rank_series *series = &recorder->ranks[i];

		if (!series->ended_ns || now - series->ended_ns < RANK_STAYS_NS)
			continue;
		quota_give(&recorder->rank_shares, series->person, 0, 1);
		*series = recorder->ranks[--recorder->n_ranks];
	}
}

size_t recorder_ranks(struct recorder *recorder, struct recorder_rank_series *ranks,
                      uint64_t *left_out)
{
	LOCKED(&recorder->lock);
	memcpy(ranks, recorder->ranks, recorder->n_ranks * sizeof(*ranks));
	*left_out = recorder->ranks_left_out;
	return recorder->n_ranks;
}

/* ---- what they say ------------------------------------------------------------------------- */

/* Of the process that records; of another one, or unreadable: none. */
static void take_account(struct recorder *recorder, int slot, int fd)
{
	AT_END(buf_free) struct buf json = { 0 };

	if (fd < 0 || !account_read(fd, &json) || slot != recorder->current)
		return;
	LOCKED(&recorder->lock);
	buf_reset(&recorder->account);
	buf_add(&recorder->account, json.data, json.len);
	recorder->n_accounts++;
}

static void take(struct recorder *recorder, int slot, const struct recorder_message *message,
                 int fd, uint64_t now)
{
	struct recorder_child *child = &recorder->children[slot];

	child->heard_ns = now;
	switch (message->kind) {
	case RECORDER_READY:
		child->ready = true;
		child->ready_ns = now;
		break;
	case RECORDER_STATE:
		child->state = message->state;
		break;
	case RECORDER_FIRED:
		if (message->fired.rule < RULE_COUNT && slot == recorder->current &&
		    recorder->settings.enabled)
			recorder_fired(recorder, message->fired.rule, message->fired.person,
			               message->text, 0, 0, now);
		break;
	case RECORDER_SAVED:
		recorder_saved(recorder, message);
		break;
	case RECORDER_RANKS:
		for (uint32_t i = 0; i < message->ranks.n && slot == recorder->current; i++)
			take_rank(recorder, &message->ranks.of[i], now);
		break;
	case RECORDER_NOTICE:
		recorder_say(recorder, "recorder: %s", message->text);
		break;
	case RECORDER_ACCOUNT:
		take_account(recorder, slot, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
}

/* So many at once: one that never stops talking is not all there is to do. */
static void hear(struct recorder *recorder, uint64_t now)
{
	struct recorder_message message;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		for (unsigned n = 0; n < 64 && recorder->children[i].worker.socket >= 0; n++) {
			int fd;

			if (recorder_receive_with(recorder->children[i].worker.socket, &message,
			                          &fd))
				break;
			take(recorder, i, &message, fd, now);
		}
	}
}

/* What was told before goes with who told it. */
static void tell_looked(struct recorder *recorder)
{
	struct recorder_child *child =
		recorder->current < 0 ? NULL : &recorder->children[recorder->current];
	struct recorder_message message = { .kind = RECORDER_LOOK };

	pthread_mutex_lock(&recorder->lock);
	message.looked = recorder->looked;
	if (recorder->account.len && (!child || !child->looked || !message.looked)) {
		buf_reset(&recorder->account);
		recorder->n_accounts++;
	}
	pthread_mutex_unlock(&recorder->lock);
	if (child && child->looked != message.looked &&
	    !recorder_send(child->worker.socket, &message))
		child->looked = message.looked;
}

/* ---- what those who ask say ---------------------------------------------------------------- */

static void rule_fired(void *data, enum rule rule, uint64_t person, const char *why)
{
	recorder_fired(data, rule, person, why, 0, 0, clock_now_ns());
}

static void judge(struct recorder *recorder, uint64_t now)
{
	struct rules_gpu gpus[RULES_GPUS_MAX];
	struct rules_facts facts;
	bool told;

	pthread_mutex_lock(&recorder->lock);
	told = recorder->told;
	recorder->told = false;
	facts = recorder->facts;
	memcpy(gpus, recorder->gpus, sizeof(gpus));
	pthread_mutex_unlock(&recorder->lock);
	facts.gpus = gpus;
	if (told)
		rules_judge(recorder->rules, &facts, now, rule_fired, recorder);
}

/* False: none is new. */
static bool next_request(struct recorder *recorder, struct request *taken)
{
	bool any = false;

	LOCKED(&recorder->lock);
	for (size_t i = 0; i < REQUESTS_MAX && !any; i++) {
		struct request *request = &recorder->requests[i];

		any = request->number && !request->taken;
		if (!any)
			continue;
		request->taken = true;
		*taken = *request;
	}
	return any;
}

static void take_requests(struct recorder *recorder, uint64_t now)
{
	struct request request;
	char why[64] = "all that was held";

	while (next_request(recorder, &request)) {
		if (request.last_ns)
			snprintf(why, sizeof(why), "the last %.3g s",
			         (double)request.last_ns / 1e9);
		recorder_fired(recorder, RULE_REQUEST, QUOTA_ROOT, why, request.last_ns,
		               request.number, now);
	}
}

/* ---- figures ------------------------------------------------------------------------------- */

/* May wait for the disk, so without the lock. */
static void look_at_spool(struct recorder *recorder, uint64_t now)
{
	struct spool_use use;
	bool known;

	if (recorder->looked_ns && now - recorder->looked_ns < LOOK_NS)
		return;
	recorder->looked_ns = now;
	known = !spool_look(recorder->spool, &use);
	LOCKED(&recorder->lock);
	recorder->figures.spool_known = known;
	if (known)
		recorder->figures.spool = use;
}

static void publish(struct recorder *recorder)
{
	struct recorder_state state = recorder->before;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		const struct recorder_state *one = &recorder->children[i].state;

		if (!recorder->children[i].worker.pid)
			continue;
		state.events += one->events;
		state.lost += one->lost;
		state.left_out += one->left_out;
		state.cpu_ns += one->cpu_ns;
		state.steps_forgotten += one->steps_forgotten;
		add_unmatched(&state, one);
		if (i != recorder->current)
			continue;
		state.held_bytes = one->held_bytes;
		state.held_ns = one->held_ns;
		state.n_short = one->n_short;
		memcpy(state.shorts, one->shorts, sizeof(state.shorts));
		state.processes = one->processes;
		state.steps_judged = one->steps_judged;
		state.overhead_percent = one->overhead_percent;
		state.scale = one->scale;
	}
	LOCKED(&recorder->lock);
	recorder->figures.up = recorder->current >= 0;
	recorder->figures.heard_ns =
		recorder->current >= 0 ? recorder->children[recorder->current].heard_ns : 0;
	recorder->figures.state = state;
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void wait_for_work(struct recorder *recorder)
{
	struct pollfd fds[2 + CHILDREN_MAX] = { { .fd = recorder->wake, .events = POLLIN } };
	uint64_t count;

	for (int i = 0; i < CHILDREN_MAX; i++)
		fds[1 + i] = (struct pollfd){ .fd = recorder->children[i].worker.socket,
			                      .events = POLLIN };
	fds[1 + CHILDREN_MAX] =
		(struct pollfd){ .fd = recorder->gpu.child.worker.socket, .events = POLLIN };
	poll(fds, 2 + CHILDREN_MAX, TURN_MS);
	if (fds[0].revents && read(recorder->wake, &count, sizeof(count)) < 0)
		return; /* somebody else was faster, which does not matter */
	for (int i = 0; i <= CHILDREN_MAX; i++) {
		if (fds[1 + i].revents & POLLHUP && !(fds[1 + i].revents & POLLIN))
			poll(NULL, 0, TURN_MS / 10); /* its end is seen soon */
	}
}

static bool is_over(struct recorder *recorder)
{

	LOCKED(&recorder->lock);
	return recorder->stop;
}

static void end_children(struct recorder *recorder)
{
	bool left = true;

	for (int i = 0; i < CHILDREN_MAX; i++)
		recorder_child_stop(&recorder->children[i], clock_now_ns());
	recorder_gpu_stop(recorder, clock_now_ns());
	while (left) {
		left = !recorder_gpu_stopped(recorder, clock_now_ns());
		for (int i = 0; i < CHILDREN_MAX; i++)
			left |= !recorder_child_ended(&recorder->children[i], clock_now_ns());
		if (left)
			poll(NULL, 0, TURN_MS / 10);
	}
}

void *recorder_run(void *data)
{
	struct recorder *recorder = data;
	unsigned cleaned = recorder->settings.enabled ? spool_clean(recorder->spool) : 0;

	if (cleaned)
		recorder_say(recorder, "recorder: %u unfinished recording%s removed from %s",
		             cleaned, cleaned == 1 ? " was" : "s were", recorder->path);
	while (!is_over(recorder)) {
		uint64_t now = clock_now_ns();

		keep_recording(recorder, now);
		hear(recorder, now);
		tell_looked(recorder);
		forget_ranks(recorder, now);
		if (recorder->settings.enabled)
			judge(recorder, now);
		take_requests(recorder, now);
		recorder_orders_turn(recorder, now);
		recorder_gpu_turn(recorder, now);
		if (recorder->settings.enabled)
			look_at_spool(recorder, now);
		publish(recorder);
		wait_for_work(recorder);
	}
	end_children(recorder);
	return NULL;
}
