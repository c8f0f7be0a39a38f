// SPDX-License-Identifier: MIT
#include "node/rules_calls.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cuda/error.h"
#include "node/error_patterns.h"
#include "node/steps.h"

#define PAUSE_NS 1000000000ull

struct call_rules {
	struct rules_settings settings;
	struct error_patterns errors;
	struct steps *steps; /* NULL: they are not judged */
	void (*fired)(void *data, enum rule rule, const char *why);
	void *data;
	uint64_t quiet_until_ns[RULE_COUNT];
};

struct call_rules *call_rules_new(const struct rules_settings *settings, uint64_t last_ns,
                                  void (*fired)(void *data, enum rule rule, const char *why),
                                  void *data)
{
	const struct steps_options steps = { .times = settings->slow_step,
		                             .least_ns = settings->step_least_ns,
		                             .unended_ns = last_ns / 2 };
	struct call_rules *rules = xcalloc(1, sizeof(*rules));

	rules->settings = *settings;
	rules->fired = fired;
	rules->data = data;
	if (error_patterns_parse(&rules->errors, settings->errors, NULL))
		rules->errors.n = 0; /* the configuration was checked before */
	if (settings->slow_step > 0)
		rules->steps = steps_new(&steps);
	return rules;
}

void call_rules_free(struct call_rules *rules)
{
	if (!rules)
		return;
	steps_free(rules->steps);
	free(rules);
}

static void fire(struct call_rules *rules, enum rule rule, uint64_t now_ns, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void fire(struct call_rules *rules, enum rule rule, uint64_t now_ns, const char *fmt, ...)
{
	char why[RULES_TEXT_MAX];
	va_list ap;

	if (now_ns < rules->quiet_until_ns[rule])
		return;
	rules->quiet_until_ns[rule] = now_ns + PAUSE_NS;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	rules->fired(rules->data, rule, why);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void see_error(struct call_rules *rules, const struct event *event)
{
	const struct call *call = event->call;
	const struct function *function = call->function;
	const char *name;

	if (!(call->flags & CALL_FAILED) || !rules->errors.n ||
	    !error_patterns_match(&rules->errors, function->name, function->layer, call->result))
		return;
	name = cuda_error_name(function->layer, call->result);
	fire(rules, RULE_ERROR, event->time_ns, "%s of process %u (%s) returned %d%s%s%s",
	     function->name, event->process->pid, event->process->comm, call->result,
	     name ? " (" : "", name ? name : "", name ? ")" : "");
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Above all numbers of kernels. */
#define A_GRAPH (1ull << 63)

static void tell_slow(struct call_rules *rules, const struct slow_step *slow, const char *comm,
                      uint64_t now_ns)
{
	char what[64] = "";

	if (slow->launches)
		snprintf(what, sizeof(what), " of %llu launch%s",
		         (unsigned long long)slow->launches, slow->launches == 1 ? "" : "es");
	fire(rules, RULE_SLOW_STEP, now_ns,
	     "a step%s of process %u%s%s%s %s %.1f ms, %.1f times the median of %.1f ms", what,
	     slow->pid, comm ? " (" : "", comm ? comm : "", comm ? ")" : "",
	     slow->ended ? "took" : "has not ended after", (double)slow->ns / 1e6,
	     (double)slow->ns / (double)(slow->median_ns ? slow->median_ns : 1),
	     (double)slow->median_ns / 1e6);
}

static void see_launch(struct call_rules *rules, const struct event *event)
{
	const struct call *call = event->call;
	struct slow_step slow;
	uint64_t what;

	if (call->flags & (CALL_NESTED | CALL_CAPTURED | CALL_FAILED))
		return;
	if (call->op == OP_LAUNCH && call->kernel)
		what = call->kernel->id;
	else if (call->op == OP_GRAPH_LAUNCH)
		what = A_GRAPH | call->args.handle;
	else
		return;
	if (steps_launch(rules->steps, event->process->pid, event->tid, what, call->begin_ns,
	                 &slow))
		tell_slow(rules, &slow, event->process->comm, event->time_ns);
}

static void see_range(struct call_rules *rules, const struct event *event)
{
	const struct range *range = event->range;
	struct slow_step slow;

	if (range->kind > RANGE_STARTEND || fnmatch(rules->settings.step_range, range->name, 0))
		return;
	if (steps_range(rules->steps, event->process->pid, event->tid, range->begin_ns,
	                range->end_ns, &slow))
		tell_slow(rules, &slow, event->process->comm, event->time_ns);
}

/* ---- what is seen -------------------------------------------------------------------------- */

void call_rules_event(struct call_rules *rules, const struct event *event)
{
	bool ranges = rules->settings.step_range[0];

	if (event->type == EVENT_CALL) {
		see_error(rules, event);
		if (rules->steps && !ranges)
			see_launch(rules, event);
	} else if (event->type == EVENT_RANGE && rules->steps && ranges) {
		see_range(rules, event);
	} else if (event->type == EVENT_EXIT && rules->steps) {
		steps_exit(rules->steps, event->process->pid);
	}
}

void call_rules_tick(struct call_rules *rules, uint64_t now_ns)
{
	struct slow_step slow;

	if (rules->steps && steps_unended(rules->steps, now_ns, &slow))
		tell_slow(rules, &slow, NULL, now_ns);
}

void call_rules_figures(const struct call_rules *rules, uint64_t *judged, uint64_t *forgotten)
{
	*judged = *forgotten = 0;
	if (rules->steps)
		steps_figures(rules->steps, judged, forgotten);
}
