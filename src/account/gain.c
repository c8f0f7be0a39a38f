// SPDX-License-Identifier: MIT
#include "account/gain.h"

#include <stdlib.h>

#include "account/change.h"

#define GAIN_POLLS 10 /* samples, of so many one: the thread asks whether the GPU is done */

/* What is left of each cause, and in all. */
struct left {
	double ns[ACCOUNT_CAUSES], all_ns;
};

static void left_add(struct left *left, const struct account_part *part, double ns)
{
	left->ns[part->cause] += ns;
	left->all_ns += ns;
}

static enum account_cause left_most(const struct left *left)
{
	enum account_cause most = ACCOUNT_UNKNOWN;

	for (int cause = 1; cause < ACCOUNT_CAUSES; cause++)
		if (left->ns[cause] > left->ns[most])
			most = (enum account_cause)cause;
	return most;
}

/* ---- the host -------------------------------------------------------------------------------- */

/* What it does between a wait for all that the GPU has to do and the next work that it asks for:
 * the GPU has nothing to do then, though the host may have come so late that it did not wait. */
static double host_after_waits(const struct fact_thread *thread, const struct account *account)
{
	const struct fact_call *waited = NULL;
	double ns = 0;

	for (size_t i = 0; i < thread->n_calls; i++) {
		const struct fact_call *call = &thread->calls[i];

		if (call->begin_ns < account->begin_ns || call->begin_ns >= account->end_ns)
			continue;
		if (waited && call->correlation) {
			ns += (double)(call->end_ns - waited->end_ns);
			waited = NULL;
		}
		if (call->waits_all)
			waited = call;
	}
	return ns;
}

static void host_make(struct gain_host *host, struct answer *answer, const struct account *account)
{
	const struct facts *facts = answer->facts;
	const struct fact_thread *thread;

	host->made = true;
	if (account->thread == FACTS_NONE)
		return;
	thread = &facts->threads[account->thread];
	if (GAIN_POLLS * thread->polls > thread->n_samples)
		return; /* how much of its time it only waited is not known */
	host->known = true;
	account_of_host(&host->account, facts, account, &answer->budget);
	host->after_ns = host_after_waits(thread, account);
}

void gain_host_clear(struct gain_host *host)
{
	free(host->account.parts);
	*host = (struct gain_host){ 0 };
}

/* For want of a CPU, which the change's own threads had. */
static bool part_lacks_changes_cpu(const struct facts *facts, const struct answer_change *change,
                                   const struct account_part *part)
{
	return part->cause == ACCOUNT_NO_CPU && part->rival && change->thread != FACTS_NONE &&
	       change->thread != change->account->thread &&
	       (change->cause == ACCOUNT_COMPUTING || change->cause == ACCOUNT_GIL) &&
	       facts->threads[change->thread].process->pid == part->rival;
}

static bool change_has_it_alone(const struct answer *answer, const struct answer_change *change,
                                const struct account_part *part)
{
	if (!change_has(answer->facts, change, part))
		return false;
	for (size_t i = 0; i < answer->n_changes; i++) {
		const struct answer_change *other = &answer->changes[i];

		if (other->account == change->account && other->turn < change->turn &&
		    change_has(answer->facts, other, part))
			return false;
	}
	return true;
}

/* What the thread does by itself, without its waits for the GPU. */
static void host_left(const struct answer *answer, const struct answer_change *change,
                      const struct gain_host *host, struct left *left)
{
	for (size_t i = 0; i < host->account.n_parts; i++) {
		const struct account_part *part = &host->account.parts[i];

		if (part->cause != ACCOUNT_SYNCHRONISATION &&
		    !change_has_it_alone(answer, change, part) &&
		    !part_lacks_changes_cpu(answer->facts, change, part))
			left_add(left, part, part->ns);
	}
}

/* ---- the GPU --------------------------------------------------------------------------------- */

/* The host came late, in its own time: no call that can wait for the GPU. */
static bool cause_is_late(enum account_cause cause)
{
	return cause == ACCOUNT_HOST || cause == ACCOUNT_LAUNCHING || cause >= ACCOUNT_COMPUTING;
}

/* What a GPU waits for that another rank does is that rank's matter, however fast this one is. */
static bool part_is_peers(const struct accounts *accounts, const struct account_part *part)
{
	uint32_t via = part->via;

	while (via && accounts->vias[via].before)
		via = accounts->vias[via].before;
	return via && accounts->vias[via].cause == ACCOUNT_COMMUNICATION;
}

/* What it runs, and what it waits for though the host is in time; *late_ns: what it does not. */
static void gpu_left(const struct answer *answer, const struct answer_change *change,
                     struct left *left, double *late_ns)
{
	const struct account *account = change->account;
	double runs_ns;

	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		if (change_has_it_alone(answer, change, part))
			continue;
		if (cause_is_late(part->cause) && !part_is_peers(answer->accounts, part))
			*late_ns += part->ns;
		else
			left_add(left, part, part->ns);
	}
	if (change->cause != ACCOUNT_STREAM_WAIT)
		return;
	/* streams that no longer wait for each other run beside each other at most */
	runs_ns = left->ns[ACCOUNT_KERNELS] + left->ns[ACCOUNT_COPIES];
	if (runs_ns > account->longest_stream_ns)
		left->all_ns -= runs_ns - account->longest_stream_ns;
	left->all_ns -= left->ns[ACCOUNT_TURNAROUND];
}

static bool cause_is_gpus(enum account_cause cause)
{
	return cause == ACCOUNT_KERNELS || cause == ACCOUNT_COPIES ||
	       cause == ACCOUNT_COMMUNICATION || cause == ACCOUNT_TURNAROUND ||
	       cause == ACCOUNT_STREAM_WAIT;
}

/* What it does, however early the host is; recording makes the host later than it is alone. */
static double gpu_least(const struct answer *answer, const struct answer_change *change)
{
	const struct account *account = change->account;
	double ns = 0;

	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		if ((cause_is_gpus(part->cause) || part_is_peers(answer->accounts, part)) &&
		    !change_has_it_alone(answer, change, part))
			ns += part->ns;
	}
	return ns;
}

void gain_find(struct answer *answer, struct answer_change *change, struct gain_host *host)
{
	struct left gpu = { 0 }, own = { 0 };
	double late_ns = 0, left_ns = change->account->ns - change->gain_ns;

	change->left_ns = change->least_ns = left_ns;
	if (change->account->gpu == FACTS_NONE)
		return; /* the GPU may have worked meanwhile */
	if (!host->made)
		host_make(host, answer, change->account);
	change->least_ns = gpu_least(answer, change);
	if (change->least_ns > left_ns)
		change->least_ns = left_ns;
	if (!host->known)
		return;
	gpu_left(answer, change, &gpu, &late_ns);
	host_left(answer, change, host, &own);
	gpu.all_ns += late_ns < host->after_ns ? late_ns : host->after_ns;
	if (gpu.all_ns >= left_ns || own.all_ns >= left_ns)
		return;
	change->left_ns = own.all_ns > gpu.all_ns ? own.all_ns : gpu.all_ns;
	if (change->least_ns > change->left_ns)
		change->least_ns = change->left_ns;
	change->then = left_most(own.all_ns > gpu.all_ns ? &own : &gpu);
}
