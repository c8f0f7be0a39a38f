// SPDX-License-Identifier: MIT
/* Which kernel takes most of the time that kernels take, and where it is asked for. */
#include <math.h>
#include <stdlib.h>

#include "analysis/by_id.h"
#include "base/spill.h"
#include "base/text.h"
#include "report/why_inside.h"

#define LONGEST_LEAST   0.2 /* of the time of all kernels: else it is one of many */
#define LONGEST_COLUMNS 60

/* Times by a dense number. */
struct times {
	double *ns;
	size_t n;
};

static void times_add(struct times *times, uint32_t number, double ns)
{
	*BY_ID(times->ns, times->n, number) += ns;
}

static uint32_t times_most(const struct times *times)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < times->n; i++)
		if (times->ns[i] > times->ns[most])
			most = i;
	return most;
}

/* Not of kernels of communication, whose time is that of a peer. */
static bool longest_counts(const struct account *account, const struct fact_work *work)
{
	return work->gpu == account->gpu && work->class == FACT_KERNEL && work->kernel &&
	       !work->sampled && work->end_ns > account->begin_ns &&
	       work->begin_ns < account->end_ns;
}

static uint32_t work_chain(const struct facts *facts, const struct fact_work *work)
{
	const struct fact_call *call;
	uint32_t thread;

	if (work->chain)
		return work->chain;
	call = facts_call_of(facts, work, &thread);
	return call ? call->chain : 0;
}

/* Where most of a kernel is asked for. */
static uint32_t kernel_chain(const struct facts *facts, const struct account *account,
                             uint32_t kernel)
{
	struct times chains = { 0 };
	uint32_t most;

	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i)) {
		const struct fact_work *work = &facts->works[i];

		if (work->kernel == kernel && longest_counts(account, work))
			times_add(&chains, work_chain(facts, work),
			          (double)(work->end_ns - work->begin_ns));
	}
	most = times_most(&chains);
	free(chains.ns);
	return most;
}

void why_find_longest(struct why *why)
{
	const struct facts *facts = &why->facts;
	const struct account *account = why_of(why);
	struct times kernels = { 0 };
	double all_ns = 0;
	uint32_t most;

	if (!account || answer_bound(account) != ACCOUNT_KERNELS)
		return;
	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i)) {
		const struct fact_work *work = &facts->works[i];

		if (!longest_counts(account, work))
			continue;
		times_add(&kernels, work->kernel, (double)(work->end_ns - work->begin_ns));
		all_ns += (double)(work->end_ns - work->begin_ns);
	}
	most = times_most(&kernels);
	if (kernels.n && kernels.ns[most] > LONGEST_LEAST * all_ns) {
		why->longest.kernel = facts->kernels[most - 1];
		why->longest.share = kernels.ns[most] / all_ns;
		why->longest.chain = kernel_chain(facts, account, most);
	}
	free(kernels.ns);
}

/* "long_scoreboard": "long scoreboard" */
static void add_reason(struct buf *out, const char *reason)
{
	size_t at = out->len;

	text_add_name(out, reason, LONGEST_COLUMNS);
	for (; at < out->len; at++)
		out->data[at] = out->data[at] == '_' ? ' ' : out->data[at];
}

/* What it waits for, where stalls were recorded. */
static void add_stall(const struct why *why)
{
	struct stall_row row, place;

	if (!stalls_use_longest(why->stalls, why->longest.kernel->name, &row, &place))
		return;
	buf_printf(why->out, "  It %s (", stall_reason_words(row.reason));
	add_reason(why->out, row.reason);
	buf_printf(why->out, ") in %.0f %% of its samples",
	           100.0 * (double)row.samples / (double)row.of_kernel);
	if (place.file) {
		buf_puts(why->out, ", most often at ");
		text_add_name(why->out, place.file, LONGEST_COLUMNS);
		buf_printf(why->out, ":%u", place.line);
	} else if (place.offset != STALL_ANYWHERE) {
		buf_printf(why->out, ", most often at offset 0x%lx", place.offset);
	}
	buf_puts(why->out, ".\n");
}

static void json_stall(const struct why *why, struct json *json)
{
	struct stall_row row, place;

	if (!stalls_use_longest(why->stalls, why->longest.kernel->name, &row, &place))
		return;
	json_open(json, "stall", '{');
	json_string(json, "reason", row.reason);
	json_fixed(json, "percent",
	           (uint64_t)llround(1000.0 * (double)row.samples / (double)row.of_kernel), 1);
	if (place.offset != STALL_ANYWHERE)
		json_u64(json, "offset", place.offset);
	if (place.file) {
		json_string(json, "file", place.file);
		json_u64(json, "line", place.line);
	}
	json_close(json, '}');
}

void why_add_longest(const struct why *why)
{
	if (!why->longest.kernel)
		return;
	buf_puts(why->out, "  Longest: ");
	text_add_name(why->out, why->longest.kernel->name, LONGEST_COLUMNS);
	buf_printf(why->out, ", %.0f %% of what kernels take", 100 * why->longest.share);
	if (why->longest.chain) {
		buf_puts(why->out, ", in ");
		why_place(why, why->longest.chain);
	}
	buf_puts(why->out, ".\n");
	add_stall(why);
}

void why_json_longest(const struct why *why, struct json *json)
{
	if (!why->longest.kernel)
		return;
	json_open(json, "longest_kernel", '{');
	json_string(json, "name", why->longest.kernel->name);
	json_fixed(json, "percent", (uint64_t)llround(1000 * why->longest.share), 1);
	why_json_place(why, json, "place", why->longest.chain);
	json_stall(why, json);
	json_close(json, '}');
}
