// SPDX-License-Identifier: MIT
#include "node/rules.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "node/error_patterns.h"
#include "node/steps.h"
#include "probe/person.h"

/* ---- rules calls --------------------------------------------------------------------------- */

#define PAUSE_NS  1000000000ull
#define QUIET_MAX 64 /* users and rules that have just fired; nobody fires where all have */

struct call_rules {
	struct rules_settings settings;
	struct error_patterns errors;
	struct steps *steps; /* NULL: they are not judged */
	rules_fired_fn fired;
	void *data;
	struct quiet {
		enum rule rule;
		uint64_t person, until_ns; /* 0: nobody's */
	} quiet[QUIET_MAX];
};

struct call_rules *call_rules_new(const struct rules_settings *settings, uint64_t last_ns,
                                  rules_fired_fn fired, void *data)
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

static bool is_quiet(struct call_rules *rules, enum rule rule, uint64_t person, uint64_t now_ns)
{
	struct quiet *free = NULL;

	for (size_t i = 0; i < QUIET_MAX; i++) {
		struct quiet *quiet = &rules->quiet[i];

		if (quiet->until_ns <= now_ns)
			free = quiet;
		else if (quiet->rule == rule && quiet->person == person)
			return true;
	}
	if (free)
		*free = (struct quiet){ rule, person, now_ns + PAUSE_NS };
	return !free;
}

__attribute__((format(printf, 5, 6))) static void calls_fire(struct call_rules *rules,
                                                             enum rule rule, uint64_t person,
                                                             uint64_t now_ns, const char *fmt, ...)
{
	char why[RULES_TEXT_MAX];
	va_list ap;

	if (is_quiet(rules, rule, person, now_ns))
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	rules->fired(rules->data, rule, person, why);
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
	calls_fire(rules, RULE_ERROR, event->process->person, event->time_ns,
	           "%s of process %u (%s) returned %d%s%s%s", function->name, event->process->pid,
	           event->process->comm, call->result, name ? " (" : "", name ? name : "",
	           name ? ")" : "");
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
	calls_fire(rules, RULE_SLOW_STEP, slow->person, now_ns,
	           "a step%s of process %u%s%s%s %s %.1f ms, %.1f times the median of %.1f ms",
	           what, slow->pid, comm ? " (" : "", comm ? comm : "", comm ? ")" : "",
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
	if (steps_launch(rules->steps, event->process, event->tid, what, call->begin_ns, &slow))
		tell_slow(rules, &slow, event->process->comm, event->time_ns);
}

static void see_range(struct call_rules *rules, const struct event *event)
{
	const struct range *range = event->range;
	struct slow_step slow;

	if (range->kind > RANGE_STARTEND || fnmatch(rules->settings.step_range, range->name, 0))
		return;
	if (steps_range(rules->steps, event->process, event->tid, range->begin_ns, range->end_ns,
	                &slow))
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

/* ---- rules --------------------------------------------------------------------------------- */

#define HOUR_NS         3600000000000ull
#define WRITTEN_MAX     2048 /* recordings that are remembered */
#define MEMORY_REARM    2.0  /* percent below the threshold at which it may fire again */
#define SAMPLE_STALE_NS 60000000000ull

static const char *const names[RULE_COUNT] = {
	[RULE_XID] = "xid",
	[RULE_ERROR] = "error",
	[RULE_MEMORY] = "memory",
	[RULE_IDLE] = "idle",
	[RULE_SLOW_STEP] = "slow_step",
	[RULE_LEAK] = "leak",
	[RULE_LATE_RANK] = "late_rank",
	[RULE_REQUEST] = "request",
};

static const char *const verdicts[RULES_VERDICT_COUNT] = {
	[RULES_ALLOWED] = "allowed",
	[RULES_COOL_DOWN] = "cool_down",
	[RULES_PER_HOUR] = "per_hour",
};

const char *rule_name(enum rule rule)
{
	return names[rule];
}

const char *rules_verdict_name(enum rules_verdict verdict)
{
	return verdicts[verdict];
}

/* What is remembered of a GPU, by its place in the list and its UUID. */
struct rules_seen {
	char uuid[96];
	bool known, full, idle, idle_told;
	uint64_t xids, idle_since_ns, seen_ns;
};

struct rules {
	struct rules_settings settings;
	struct rules_seen seen[RULES_GPUS_MAX];
	bool leaks_known;
	uint64_t leaks;
	struct written {
		enum rule rule;
		uint64_t person, ns;
	} written[WRITTEN_MAX]; /* a ring */
	uint64_t n_written;     /* ever */
};

struct rules *rules_new(const struct rules_settings *settings)
{
	struct rules *rules = xcalloc(1, sizeof(*rules));

	rules->settings = *settings;
	return rules;
}

void rules_free(struct rules *rules)
{
	free(rules);
}

/* ---- judging ------------------------------------------------------------------------------- */

struct judging {
	struct rules *rules;
	uint64_t now_ns;
	rules_fired_fn fired;
	void *data;
};

__attribute__((format(printf, 3, 4))) static void fire(const struct judging *judging,
                                                       enum rule rule, const char *fmt, ...)
{
	char why[RULES_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	judging->fired(judging->data, rule, QUOTA_ROOT, why);
}

static void judge_xid(const struct judging *judging, const struct rules_gpu *gpu,
                      struct rules_seen *seen)
{
	if (judging->rules->settings.xid && seen->known && gpu->xids > seen->xids)
		fire(judging, RULE_XID, "Xid %u of GPU %s", gpu->last_xid, gpu->uuid);
	seen->xids = gpu->xids;
}

static void judge_memory(const struct judging *judging, const struct rules_gpu *gpu,
                         struct rules_seen *seen)
{
	double most = judging->rules->settings.memory_percent, percent;

	if (most <= 0 || gpu->memory_total_bytes <= 0 || gpu->memory_used_bytes < 0)
		return;
	percent = 100.0 * (double)gpu->memory_used_bytes / (double)gpu->memory_total_bytes;
	if (percent >= most && !seen->full) {
		seen->full = true;
		if (seen->known)
			fire(judging, RULE_MEMORY, "%.1f %% of the memory of GPU %s is in use",
			     percent, gpu->uuid);
	} else if (percent < most - MEMORY_REARM) {
		seen->full = false;
	}
}

/* Idle since it was first seen so: NVML tells of a moment, and nobody knows what was before. */
static void judge_idle(const struct judging *judging, const struct rules_gpu *gpu,
                       struct rules_seen *seen)
{
	uint64_t limit_ns = judging->rules->settings.idle_ns, since_ns;

	if (!limit_ns || gpu->busy_percent < 0)
		return;
	if (gpu->busy_percent || gpu->processes <= 0) {
		seen->idle = seen->idle_told = false;
		return;
	}
	/* nobody looked for a while: it may have worked meanwhile */
	if (!seen->idle || judging->now_ns - seen->seen_ns > SAMPLE_STALE_NS)
		seen->idle_since_ns = judging->now_ns;
	seen->idle = true;
	since_ns = judging->now_ns - seen->idle_since_ns;
	if (since_ns < limit_ns || seen->idle_told)
		return;
	seen->idle_told = true;
	fire(judging, RULE_IDLE, "GPU %s has been idle for %.1f s while %d process%s had a context",
	     gpu->uuid, (double)since_ns / 1e9, gpu->processes, gpu->processes == 1 ? "" : "es");
}

static void judge_gpu(const struct judging *judging, const struct rules_gpu *gpu,
                      struct rules_seen *seen)
{
	if (strcmp(seen->uuid, gpu->uuid)) { /* another one stands here now */
		memset(seen, 0, sizeof(*seen));
		snprintf(seen->uuid, sizeof(seen->uuid), "%s", gpu->uuid);
	}
	judge_xid(judging, gpu, seen);
	judge_memory(judging, gpu, seen);
	judge_idle(judging, gpu, seen);
	seen->known = true;
	seen->seen_ns = judging->now_ns;
}

/* Who leaks at each look hides nobody else's leak. */
static void judge_leaks(const struct judging *judging, const struct rules_facts *facts)
{
	struct rules *rules = judging->rules;
	uint64_t first = rules->leaks;
	char why[RULES_TEXT_MAX + 32];

	if (facts->leaks > first + RULES_LEAKS_MAX)
		first = facts->leaks - RULES_LEAKS_MAX;
	if (!rules->settings.leak || !rules->leaks_known)
		first = facts->leaks;
	for (; first < facts->leaks; first++) {
		const struct rules_leak *leak = &facts->leak[first % RULES_LEAKS_MAX];

		snprintf(why, sizeof(why), "suspected leak: %s", leak->text);
		judging->fired(judging->data, RULE_LEAK, leak->person, why);
	}
	rules->leaks_known = true;
	rules->leaks = facts->leaks;
}

void rules_judge(struct rules *rules, const struct rules_facts *facts, uint64_t now_ns,
                 rules_fired_fn fired, void *data)
{
	const struct judging judging = { rules, now_ns, fired, data };

	for (size_t i = 0; i < facts->n_gpus && i < RULES_GPUS_MAX; i++)
		judge_gpu(&judging, &facts->gpus[i], &rules->seen[i]);
	judge_leaks(&judging, facts);
}

/* ---- how often ----------------------------------------------------------------------------- */

static uint64_t left_ns(uint64_t since_ns, uint64_t pause_ns, uint64_t now_ns)
{
	uint64_t gone_ns = now_ns > since_ns ? now_ns - since_ns : 0;

	return gone_ns < pause_ns ? pause_ns - gone_ns : 0;
}

static uint64_t pause_of(const struct rules *rules, enum rule rule)
{
	uint64_t pause_ns = rules->settings.cool_down_ns;

	return rule == RULE_REQUEST && pause_ns > REQUEST_PAUSE_NS ? REQUEST_PAUSE_NS : pause_ns;
}

/* Of those of the last hour that are no requests the oldest of `n`, of one user or of all. */
struct hour {
	uint64_t n, oldest_ns;
};

static void hour_add(struct hour *hour, const struct written *written)
{
	if (!hour->n++ || written->ns < hour->oldest_ns)
		hour->oldest_ns = written->ns;
}

static bool hour_is_full(const struct hour *hour, uint64_t most, uint64_t now_ns, uint64_t *wait_ns)
{
	if (hour->n < most)
		return false;
	*wait_ns = hour->n ? left_ns(hour->oldest_ns, HOUR_NS, now_ns) : HOUR_NS;
	return true;
}

/* Of a GPU, or of a process that had ended: it is not known whose it was, and he may fire others.
 */
static bool is_anybodys(enum rule rule, uint64_t person)
{
	return rule == RULE_XID || rule == RULE_MEMORY || rule == RULE_IDLE ||
	       person == PERSON_UNKNOWN;
}

enum rules_verdict rules_allow(struct rules *rules, enum rule rule, uint64_t person,
                               uint64_t now_ns, uint64_t *wait_ns)
{
	const uint64_t most = rules->settings.per_hour, pause_ns = pause_of(rules, rule);
	size_t n = rules->n_written < WRITTEN_MAX ? rules->n_written : WRITTEN_MAX;
	struct hour all = { 0 }, own = { 0 }, anybodys = { 0 };
	uint64_t left;

	*wait_ns = 0;
	for (size_t i = 0; i < n; i++) {
		const struct written *one = &rules->written[i];
		uint64_t cools_ns = one->rule == rule && one->person == person
		                            ? left_ns(one->ns, pause_ns, now_ns)
		                            : 0;

		*wait_ns = cools_ns > *wait_ns ? cools_ns : *wait_ns;
		if (one->rule == RULE_REQUEST || !left_ns(one->ns, HOUR_NS, now_ns))
			continue;
		hour_add(&all, one);
		if (is_anybodys(one->rule, one->person))
			hour_add(&anybodys, one);
		else if (one->person == person)
			hour_add(&own, one);
	}
	left = most - (anybodys.n < most ? anybodys.n : most);
	if (*wait_ns)
		return RULES_COOL_DOWN;
	if (rule != RULE_REQUEST &&
	    (hour_is_full(&all, most, now_ns, wait_ns) ||
	     (is_anybodys(rule, person) &&
	      hour_is_full(&anybodys, most - most / 2, now_ns, wait_ns)) ||
	     (person != QUOTA_ROOT && hour_is_full(&own, left - left / 4, now_ns, wait_ns))))
		return RULES_PER_HOUR;
	rules->written[rules->n_written++ % WRITTEN_MAX] = (struct written){ rule, person, now_ns };
	return RULES_ALLOWED;
}

void rules_take_back(struct rules *rules)
{
	rules->n_written--;
}
