// SPDX-License-Identifier: MIT
#include "report/findings/findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/findings/findings_lines.h"
#include "report/gaps/gaps.h"
#include "analysis/memory.h"
#include "analysis/thread_ids.h"
#include "analysis/xids.h"

static const struct finding_rule *const rules[] = {
	&rule_sync_copies,   &rule_sync_sets,      &rule_pageable_copies, &rule_small_copies,
	&rule_needless_sync, &rule_polling,        &rule_short_kernels,   &rule_launch_calls,
	&rule_allocation,    &rule_default_stream, &rule_copy_overlap,    &rule_communication,
	&rule_low_use,       &rule_gpu_use,        &rule_host_waits,      &rule_run_queue,
	&rule_xids,
};

#define N_RULES (ARRAY_SIZE(rules))
#define GAPS_NS 20000 /* as the report gaps tells them by themselves */

/* What is known of a process while events come. */
struct seen_process {
	struct finding_process now;
	uint64_t first_ns, last_ns;
};

struct findings {
	struct consumer consumer; /* first: what callers hold */
	void *states[N_RULES];
	struct work *work;
	struct thread_ids *threads;
	struct seen_process *processes; /* by id */
	size_t n_processes;
	bool gpu_times;
	struct finding *rows;
	size_t n_rows;
	struct finding_unjudged unjudged[N_RULES];
	size_t n_unjudged;
	struct stack_places *places;
	/* Of calls that work may come for, by their places in the window: */
	struct walked_call {
		uint64_t number;
		const struct stack *stack;
	} * walked;
	size_t n_walked;
	const struct stack *stack; /* of the call that the event is */
	struct consumer *gaps;     /* from the first wait on that is told of; NULL: there is none */
	struct xids *xids;
	bool kernel_side; /* something of it was recorded */
};

size_t findings_rules(void)
{
	return N_RULES;
}

/* ---- events -------------------------------------------------------------------------------- */

/* The window keeps no stacks: they are beside it. */
static const struct stack *stack_of(const struct findings *findings, const struct work_call *call)
{
	uint32_t place = work_now(findings->work)->place;

	if (findings->stack)
		return findings->stack;
	if (place >= findings->n_walked || findings->walked[place].number != call->number)
		return NULL;
	return findings->walked[place].stack;
}

static void keep_stack(struct findings *findings, const struct stack *stack)
{
	const struct work_now *now = work_now(findings->work);
	struct walked_call *walked;

	if (!now->call || !now->call->number)
		return;
	walked = FINDING_AT(findings->walked, findings->n_walked, now->place);
	walked->number = now->call->number;
	walked->stack = stack;
}

static void tell_asked(void *data, const struct work_done *done, const struct work_call *call)
{
	struct findings *findings = data;
	const struct stack *stack = call ? stack_of(findings, call) : NULL;

	for (size_t i = 0; call && i < N_RULES; i++) {
		if (rules[i]->asked)
			rules[i]->asked(findings->states[i], done, call, stack);
	}
}

static struct seen_process *process_of(struct findings *findings, const struct event *event,
                                       uint64_t begin_ns, uint64_t end_ns)
{
	struct seen_process *process =
		FINDING_AT(findings->processes, findings->n_processes, event->process->id);

	if (!process->now.process) {
		process->now.process = event->process;
		process->first_ns = begin_ns;
	}
	if (begin_ns < process->first_ns)
		process->first_ns = begin_ns;
	if (end_ns > process->last_ns)
		process->last_ns = end_ns;
	return process;
}

static void see_call(struct findings *findings, const struct event *event)
{
	const struct call *call = event->call;
	struct seen_process *process;
	struct finding_call seen;

	if (call->flags & CALL_NESTED)
		return;
	process = process_of(findings, event, call->begin_ns, event->time_ns);
	if (!call_counts(call))
		return;
	seen = (struct finding_call){
		.process = event->process,
		.call = call,
		.tid = event->tid,
		.thread = thread_ids_of(findings->threads, event),
		.launch = call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH,
	};
	if (seen.launch) {
		uint64_t launches = ++process->now.launches;

		process->now.octave += !(launches & (launches - 1));
	}
	seen.octave = process->now.octave;
	for (size_t i = 0; i < N_RULES; i++) {
		if (rules[i]->call)
			rules[i]->call(findings->states[i], &seen);
	}
}

static void see_activity(struct findings *findings, const struct event *event)
{
	struct seen_process *process =
		process_of(findings, event, event->activity->begin_ns, event->activity->end_ns);

	process->now.gpu_times = findings->gpu_times = true;
}

static void tell_event(struct findings *findings, const struct event *event)
{
	for (size_t i = 0; i < N_RULES; i++) {
		if (rules[i]->event)
			rules[i]->event(findings->states[i], event);
	}
}

static void tell_metrics(struct findings *findings, const struct gpu_metrics_sample *sample)
{
	for (size_t i = 0; i < N_RULES; i++) {
		if (rules[i]->metrics)
			rules[i]->metrics(findings->states[i], sample);
	}
}

/* Few recordings tell what threads wait for, and gaps take time. */
static int see_gaps(struct findings *findings, const struct event *event, struct err *err)
{
	const struct gaps_options options = { .threshold_ns = GAPS_NS,
		                              .longest = 1,
		                              .work = findings->work };

	if (!findings->gaps && event->type == EVENT_SAMPLE && event->sample->wait)
		findings->gaps = gaps_new(&options);
	return findings->gaps ? findings->gaps->ops->event(findings->gaps, event, err) : 0;
}

static int findings_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct findings *findings = (struct findings *)self;

	if (event->type == EVENT_METRICS) { /* of no process, and no work */
		tell_metrics(findings, event->metrics);
		return 0;
	}
	if (event->type == EVENT_THREAD)
		thread_ids_renew(findings->threads, event);
	else if (event->type == EVENT_CALL)
		see_call(findings, event);
	else if (event->type == EVENT_ACTIVITY)
		see_activity(findings, event);
	else if (event->type == EVENT_OTHER_CALL)
		findings->kernel_side |= event->call->function->layer == LAYER_KERNEL;
	if (event->type == EVENT_ACTIVITY || event->type == EVENT_RANGE)
		tell_event(findings, event);
	xids_event(findings->xids, event);
	findings->stack = event->type == EVENT_CALL ? event->call->stack : NULL;
	work_join(findings->work, event, tell_asked, findings);
	if (findings->stack)
		keep_stack(findings, findings->stack);
	return see_gaps(findings, event, err);
}

/* ---- what rules keep ----------------------------------------------------------------------- */

void finding_case(struct finding_cases *cases, const struct finding_example *example)
{
	cases->count++;
	cases->cost_ns += example->cost_ns;
	cases->bytes += example->bytes;
	if (cases->count == 1 || example->cost_ns > cases->worst.cost_ns)
		cases->worst = *example;
	if (example->stack)
		finding_stack_add(&cases->stacks,
		                  &(struct finding_stack){ example->stack, 1, example->cost_ns });
}

struct finding_example finding_example_of(const struct finding_call *call)
{
	return (struct finding_example){
		.function = call->call->function,
		.kernel = call->call->kernel,
		.tid = call->tid,
		.begin_ns = call->call->begin_ns,
		.duration_ns = call_duration_ns(call->call),
		.bytes = call->call->args.bytes,
		.cost_ns = call_duration_ns(call->call),
		.stack = call->call->stack,
	};
}

struct finding_cases *finding_loop_at(struct finding_loop *loop, unsigned octave)
{
	if (loop->octave != octave) {
		if (loop->octave + 1 == octave)
			loop->before = loop->now;
		else
			memset(&loop->before, 0, sizeof(loop->before));
		memset(&loop->now, 0, sizeof(loop->now));
		loop->octave = octave;
	}
	return &loop->now;
}

struct finding_cases finding_loop_end(const struct finding_loop *loop, unsigned octave)
{
	struct finding_cases all = { 0 };

	if (loop->octave + 1 < octave)
		return all;
	all = loop->now;
	if (loop->octave != octave || !loop->before.count)
		return all;
	all.count += loop->before.count;
	all.cost_ns += loop->before.cost_ns;
	all.bytes += loop->before.bytes;
	finding_add_stacks(&all.stacks, &loop->before.stacks);
	if (!loop->now.count || loop->before.worst.cost_ns > loop->now.worst.cost_ns)
		all.worst = loop->before.worst;
	return all;
}

/* ---- verdicts ------------------------------------------------------------------------------ */

const struct finding_process *finding_process(const struct finding_verdicts *verdicts, size_t id)
{
	return id < verdicts->n_processes && verdicts->processes[id].process
	               ? &verdicts->processes[id]
	               : NULL;
}

bool finding_is_worth(const struct finding_process *process, uint64_t lost_ns)
{
	return lost_ns && (double)lost_ns >= LIMIT_LOST_SHARE * (double)process->span_ns;
}

struct finding *findings_add(const struct finding_verdicts *verdicts,
                             const struct finding_rule *rule, const struct finding_process *process)
{
	struct findings *findings = verdicts->findings;
	struct finding *finding;

	findings->rows = xrealloc(findings->rows, (findings->n_rows + 1) * sizeof(*findings->rows));
	finding = &findings->rows[findings->n_rows++];
	*finding = (struct finding){
		.rule = rule->name,
		.title = rule->title,
		.process = process->process,
		.span_ns = process->span_ns,
	};
	return finding;
}

void findings_cannot_judge(const struct finding_verdicts *verdicts, const struct finding_rule *rule,
                           const char *why)
{
	struct findings *findings = verdicts->findings;

	findings->unjudged[findings->n_unjudged++] =
		(struct finding_unjudged){ .rule = rule->name, .title = rule->title, .why = why };
}

void finding_set_cases(const struct finding_verdicts *verdicts, struct finding *finding,
                       const struct finding_cases *cases)
{
	finding_set_lines(finding, cases, verdicts->findings->places);
	finding->count = cases->count;
	finding->lost_ns = cases->cost_ns;
	finding->lost_known = true;
	finding->example = cases->worst;
	finding->has_example = cases->count > 0;
}

void finding_say(struct finding *finding, struct buf *text)
{
	finding->evidence = text->data ? text->data : xstrdup("");
	memset(text, 0, sizeof(*text));
}

void finding_count(struct buf *out, uint64_t n, const char *what)
{
	buf_u64(out, n);
	buf_printf(out, " %s%s", what, n == 1 ? "" : "s");
}

static int by_time_lost(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;
	int order;

	if (a->first_of_all != b->first_of_all)
		return a->first_of_all ? -1 : 1;
	if (a->lost_known != b->lost_known)
		return a->lost_known ? -1 : 1;
	if (a->lost_ns != b->lost_ns)
		return a->lost_ns < b->lost_ns ? 1 : -1;
	order = strcmp(a->rule, b->rule);
	if (!order)
		order = a->process->id < b->process->id ? -1 : a->process->id > b->process->id;
	if (!order)
		order = (a->device > b->device) - (a->device < b->device);
	return order ? order
	             : (a->example.begin_ns > b->example.begin_ns) -
	                       (a->example.begin_ns < b->example.begin_ns);
}

static const char *cannot(const struct findings *findings, const struct finding_rule *rule,
                          const struct run_info *run)
{
	if ((rule->needs & NEEDS_GPU) && !findings->gpu_times)
		return "needs GPU times";
	if ((rule->needs & NEEDS_DURATIONS) && !run->returns)
		return "needs the durations of calls, which were not recorded";
	return NULL;
}

static void judge(struct findings *findings, const struct run_info *run,
                  struct finding_process *processes)
{
	struct finding_verdicts verdicts = { .processes = processes,
		                             .n_processes = findings->n_processes,
		                             .run = run,
		                             .findings = findings,
		                             .gaps = findings->gaps,
		                             .xids = findings->kernel_side ? findings->xids
		                                                           : NULL };

	if (findings->gaps)
		gaps_finish(findings->gaps);
	for (size_t i = 0; i < N_RULES; i++) {
		const char *why = cannot(findings, rules[i], run);

		if (why)
			findings_cannot_judge(&verdicts, rules[i], why);
		else
			rules[i]->judge(findings->states[i], rules[i], &verdicts);
	}
}

static void forget_rows(struct findings *findings)
{
	for (size_t i = 0; i < findings->n_rows; i++)
		free(findings->rows[i].evidence), free(findings->rows[i].lines);
	free(findings->rows);
	findings->rows = NULL;
	findings->n_rows = findings->n_unjudged = 0;
}

const struct finding *findings_rows(struct consumer *self, const struct run_info *run, size_t *n)
{
	struct findings *findings = (struct findings *)self;
	struct finding_process *processes = xcalloc(findings->n_processes + 1, sizeof(*processes));

	forget_rows(findings);
	for (size_t i = 0; i < findings->n_processes; i++) {
		const struct seen_process *seen = &findings->processes[i];

		processes[i] = seen->now;
		processes[i].span_ns =
			seen->last_ns > seen->first_ns ? seen->last_ns - seen->first_ns : 0;
	}
	judge(findings, run, processes);
	free(processes);
	if (findings->n_rows)
		qsort(findings->rows, findings->n_rows, sizeof(*findings->rows), by_time_lost);
	*n = findings->n_rows;
	return findings->rows;
}

const struct finding_unjudged *findings_unjudged(const struct consumer *self, size_t *n)
{
	const struct findings *findings = (const struct findings *)self;

	*n = findings->n_unjudged;
	return findings->unjudged;
}

size_t findings_without_gpu_times(const struct consumer *self)
{
	const struct findings *findings = (const struct findings *)self;
	size_t n = 0;

	for (size_t i = 0; findings->gpu_times && i < findings->n_processes; i++)
		n += findings->processes[i].now.launches && !findings->processes[i].now.gpu_times;
	return n;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void findings_free(struct consumer *self)
{
	struct findings *findings = (struct findings *)self;

	for (size_t i = 0; i < N_RULES; i++)
		rules[i]->free(findings->states[i]);
	forget_rows(findings);
	if (findings->gaps)
		findings->gaps->ops->free(findings->gaps);
	xids_free(findings->xids);
	work_free(findings->work);
	thread_ids_free(findings->threads);
	stack_places_free(findings->places);
	free(findings->walked);
	free(findings->processes);
	free(findings);
}

static const struct consumer_ops findings_ops = { .metrics = true,
	                                          .event = findings_event,
	                                          .free = findings_free };

struct consumer *findings_new(struct work *work)
{
	struct findings *findings = xcalloc(1, sizeof(*findings));

	findings->consumer.ops = &findings_ops;
	findings->work = work_share(work);
	findings->threads = thread_ids_new();
	findings->xids = xids_new();
	findings->places = stack_places_new();
	for (size_t i = 0; i < N_RULES; i++)
		findings->states[i] = rules[i]->create();
	return &findings->consumer;
}
