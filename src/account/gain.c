// SPDX-License-Identifier: MIT
#include "account/gain.h"

#include <stdlib.h>

static enum account_cause left_most(const struct gain_left *left)
{
	enum account_cause most = ACCOUNT_UNKNOWN;

	for (int cause = 1; cause < ACCOUNT_CAUSES; cause++)
		if (left->ns[cause] > left->ns[most])
			most = (enum account_cause)cause;
	return most;
}

/* ---- the GPU --------------------------------------------------------------------------------- */

/* The host came late, in its own time: no call that can wait for the GPU. */
static bool cause_is_late(enum account_cause cause)
{
	return cause == ACCOUNT_HOST || cause == ACCOUNT_LAUNCHING || cause >= ACCOUNT_COMPUTING;
}

/* What it runs, and what it waits for though the host is in time; *late_ns: what it does not. */
static void gpu_left(const struct answer *answer, const struct answer_change *change,
                     const struct gain_waits *waits, struct gain_left *left, double *late_ns)
{
	const struct account *account = change->account;
	double runs_ns;

	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		if (gain_has(answer, change, waits, part))
			continue;
		if (cause_is_late(part->cause) &&
		    !account_part_is_for_peers(answer->accounts, part))
			*late_ns += part->ns;
		else
			gain_left_add(left, part, 1);
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
static double gpu_least(const struct answer *answer, const struct answer_change *change,
                        const struct gain_waits *waits)
{
	const struct account *account = change->account;
	double ns = 0;

	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		if ((cause_is_gpus(part->cause) ||
		     account_part_is_for_peers(answer->accounts, part)) &&
		    !gain_has(answer, change, waits, part))
			ns += part->ns;
	}
	return ns;
}

/* Those who work beside the thread, and whom it waits for, need as long as before: what it saves it
 * waits longer for them. */
static void gain_bound(struct answer *answer, struct answer_change *change, struct gain_host *host)
{
	struct gain_left beside = { 0 };

	if (!host->known || change->thread != change->account->thread)
		return;
	gain_host_beside(answer, change, host, &beside);
	if (beside.all_ns > change->account->ns)
		beside.all_ns = change->account->ns;
	if (beside.all_ns <= change->left_ns)
		return;
	change->left_ns = beside.all_ns;
	change->then = left_most(&beside);
	if (change->least_ns < change->left_ns)
		change->least_ns = change->left_ns;
}

static void gain_find_left(struct answer *answer, struct answer_change *change,
                           const struct gain_waits *waits, struct gain_host *host)
{
	struct gain_left gpu = { 0 }, own = { 0 };
	double late_ns = 0, after_ns, left_ns = change->left_ns;

	change->least_ns = gpu_least(answer, change, waits);
	if (change->least_ns > left_ns)
		change->least_ns = left_ns;
	if (!host->known)
		return;
	gpu_left(answer, change, waits, &gpu, &late_ns);
	gain_host_left(answer, change, host, &own);
	after_ns = gain_host_after_waits(answer->facts, change);
	gpu.all_ns += late_ns < after_ns ? late_ns : after_ns;
	if (gpu.all_ns >= left_ns || own.all_ns >= left_ns)
		return;
	change->left_ns = own.all_ns > gpu.all_ns ? own.all_ns : gpu.all_ns;
	if (change->least_ns > change->left_ns)
		change->least_ns = change->left_ns;
	change->then = left_most(own.all_ns > gpu.all_ns ? &own : &gpu);
}

void gain_find(struct answer *answer, struct answer_change *change, struct gain_host *host)
{
	struct gain_waits waits = { .vias = answer->accounts->vias, .n = answer->accounts->n_vias };

	change->left_ns = change->least_ns = change->account->ns - change->gain_ns;
	if (change->account->gpu == FACTS_NONE)
		return; /* the GPU may have worked meanwhile */
	if (!host->made)
		gain_host_make(host, answer, change->account);
	gain_waits_make(&waits, answer, change, change->account);
	gain_find_left(answer, change, &waits, host);
	gain_bound(answer, change, host);
	free(waits.gone);
}
