// SPDX-License-Identifier: MIT
/* Of the flight recorder: recordings, from the rule that fired to what came of them. */
#include "node/recorder_inside.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_NS 90000000000ull /* within which a recording is written */

/* ---- what comes of them -------------------------------------------------------------------- */

static void answer(struct recorder *recorder, uint64_t number, enum recorder_answer answer,
                   const char *text)
{
	pthread_mutex_lock(&recorder->lock);
	for (size_t i = 0; i < REQUESTS_MAX; i++) {
		struct request *request = &recorder->requests[i];

		if (!number || request->number != number)
			continue;
		request->answer = answer;
		snprintf(request->text, sizeof(request->text), "%s", text);
	}
	pthread_mutex_unlock(&recorder->lock);
}

static void failed(struct recorder *recorder, enum rule rule, uint64_t request,
                   enum recorder_why why, const char *text)
{
	pthread_mutex_lock(&recorder->lock);
	recorder->figures.failed[why]++;
	pthread_mutex_unlock(&recorder->lock);
	recorder_say(recorder, "recorder: nothing was written for the rule %s: %s", rule_name(rule),
	             text);
	answer(recorder, request, RECORDER_FAILED, text);
}

static void drop_first(struct recorder *recorder)
{
	recorder->n_orders--;
	memmove(recorder->orders, recorder->orders + 1,
	        recorder->n_orders * sizeof(*recorder->orders));
	recorder->sent_ns = 0;
}

void recorder_saved(struct recorder *recorder, const struct recorder_message *message)
{
	const struct recorder_saved *saved = &message->saved;
	struct order *order = recorder->orders;

	if (!recorder->sent_ns || saved->ticket != order->save.ticket ||
	    saved->why >= RECORDER_WHY_COUNT) /* one that was given up */
		return;
	if (saved->why) {
		failed(recorder, order->save.rule, order->request, saved->why, message->text);
	} else {
		pthread_mutex_lock(&recorder->lock);
		recorder->figures.written[order->save.rule]++;
		pthread_mutex_unlock(&recorder->lock);
		recorder_say(recorder, "recorder: %s/%s: %llu events; %s", recorder->path,
		             saved->name, (unsigned long long)saved->events, order->save.reason);
		answer(recorder, order->request, RECORDER_WRITTEN, saved->name);
	}
	recorder->looked_ns = 0; /* the spool is another one now */
	drop_first(recorder);
}

void recorder_orders_lost(struct recorder *recorder)
{
	if (!recorder->sent_ns)
		return;
	failed(recorder, recorder->orders->save.rule, recorder->orders->request, RECORDER_CRASHED,
	       "the process that records has ended");
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
	answer(recorder, request, RECORDER_REFUSED, text);
}

void recorder_fired(struct recorder *recorder, enum rule rule, const char *why, uint64_t last_ns,
                    uint64_t request, uint64_t now_ns)
{
	struct order *order = &recorder->orders[recorder->n_orders];
	enum rules_verdict verdict;
	uint64_t wait_ns;

	verdict = rules_allow(recorder->rules, rule, now_ns, &wait_ns);
	if (verdict != RULES_ALLOWED) {
		hold_back(recorder, verdict, request, wait_ns);
		return;
	}
	if (recorder->current < 0 || recorder->n_orders == ORDERS_MAX) {
		rules_take_back(recorder->rules, rule);
		failed(recorder, rule, request,
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
void recorder_orders_turn(struct recorder *recorder, uint64_t now_ns)
{
	struct recorder_message message = { .kind = RECORDER_SAVE };
	const struct order *first = recorder->orders;

	if (recorder->sent_ns && now_ns - recorder->sent_ns > ANSWER_NS) {
		failed(recorder, first->save.rule, first->request, RECORDER_TIMEOUT,
		       "the disk of the spool does not answer");
		drop_first(recorder);
	}
	if (!recorder->n_orders || recorder->sent_ns || first->due_ns > now_ns)
		return;
	if (recorder->current < 0) {
		failed(recorder, first->save.rule, first->request, RECORDER_NOT_RUNNING,
		       "calls are not being recorded at the moment");
		drop_first(recorder);
		return;
	}
	message.save = first->save;
	if (!recorder_send(recorder->children[recorder->current].worker.socket, &message))
		recorder->sent_ns = now_ns;
}
