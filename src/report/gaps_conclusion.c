// SPDX-License-Identifier: MIT
/* What the gaps of a GPU come to: two sentences. */
#include "report/gaps.h"

#define BUSY_ENOUGH 90 /* percent: more cannot be gained by asking earlier */
#define MOST_OF     50 /* percent of the idle time that make a cause the one to name */

double gaps_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

/* A GPU that has to wait until the host has asked, and until it has been heard, lacks the same. */
enum reason {
	REASON_HOST,
	REASON_SYNC,
	REASON_COPY,
	REASON_WAITING,
	REASON_TURNAROUND,
	REASON_UNKNOWN,
	REASONS
};

static const enum reason reason_of[GAP_CAUSES] = {
	[GAP_HOST] = REASON_HOST,          [GAP_SYNC] = REASON_SYNC,
	[GAP_COPY] = REASON_COPY,          [GAP_LATENCY] = REASON_HOST,
	[GAP_WAITING] = REASON_WAITING,    [GAP_TURNAROUND] = REASON_TURNAROUND,
	[GAP_OTHER_WORK] = REASON_UNKNOWN, [GAP_UNKNOWN] = REASON_UNKNOWN,
};

static const struct {
	const char *verdict, *why;
} reasons[REASONS] = {
	[REASON_HOST] = { "launch-bound", "waiting for the host to ask" },
	[REASON_SYNC] = { "synchronisation-bound", "lost to waits of the host" },
	[REASON_COPY] = { "copy-bound", "waiting for the host, which copied" },
	[REASON_WAITING] = { "stream-bound", "streams waiting for events or each other" },
	[REASON_TURNAROUND] = { "many small kernels", "between one and the next" },
	[REASON_UNKNOWN] = { "not known", "idle, and nothing recorded tells why" },
};

struct sum {
	uint64_t ns, count, long_ns, host_ns, cuda_ns, most_ns; /* long_ns: of the threshold on */
	const struct function *most;
};

static void sum_up(const struct gap_line *gpu, struct sum *sums)
{
	for (size_t i = 0; i < GAP_CAUSES; i++) {
		const struct gap_sum *from = &gpu->cause[i];
		struct sum *sum = &sums[reason_of[i]];

		sum->ns += from->ns + from->short_ns;
		sum->count += from->count + from->short_count;
		sum->long_ns += from->ns;
		sum->host_ns += from->host_ns;
		sum->cuda_ns += from->cuda_ns;
		if (from->most_ns > sum->most_ns) {
			sum->most_ns = from->most_ns;
			sum->most = from->most;
		}
	}
}

static void add_most(struct buf *out, const struct sum *sum)
{
	if (sum->most)
		buf_printf(out, ", most in %s", sum->most->name);
}

static void add_gaps(struct buf *out, const struct sum *sum)
{
	buf_u64(out, sum->count);
	buf_printf(out, " gap%s of ", sum->count == 1 ? "" : "s");
	buf_duration(out, sum->count ? sum->ns / sum->count : 0);
	if (sum->count != 1)
		buf_puts(out, " on average");
}

/* Small gaps say that launches take long, large ones that the host is busy with something else. */
static void advise_on_host(struct buf *out, const struct sum *sum)
{
	if (sum->long_ns < sum->ns / 2 || !sum->host_ns) {
		add_gaps(out, sum);
		buf_puts(out, ": fewer and larger kernels, or graphs, need fewer launches");
		return;
	}
	buf_printf(out, "of that time, the host was outside of CUDA for %.0f %%",
	           gaps_percent(sum->host_ns - sum->cuda_ns, sum->host_ns));
	if (sum->most && sum->cuda_ns)
		buf_printf(out, "; of calls, %s took most", sum->most->name);
}

static void advise(struct buf *out, enum reason reason, const struct sum *sum)
{
	if (reason == REASON_HOST) {
		advise_on_host(out, sum);
		return;
	}
	add_gaps(out, sum);
	switch (reason) {
	case REASON_SYNC:
		add_most(out, sum);
		buf_puts(out, ": ask for the next work before waiting, or wait less often");
		break;
	case REASON_COPY:
		add_most(out, sum);
		buf_puts(out, ": pinned memory and asynchronous copies let the host go on");
		break;
	case REASON_WAITING:
		add_most(out, sum);
		buf_puts(out, ": what they waited for is in the longest gaps");
		break;
	case REASON_TURNAROUND:
		buf_puts(out, ": fewer and larger kernels, or graphs, have fewer of them");
		break;
	default:
		buf_puts(out,
		         ": lost records, or work of programs that were not traced, can be why");
	}
}

void gaps_conclude(const struct gap_line *gpu, struct gaps_conclusion *conclusion)
{
	uint64_t span_ns = gap_line_span_ns(gpu);
	double busy = gaps_percent(gpu->busy_ns, span_ns);
	struct sum sums[REASONS] = { 0 };
	enum reason most = 0;

	sum_up(gpu, sums);
	for (enum reason i = 1; i < REASONS; i++)
		most = sums[i].ns > sums[most].ns ? i : most;
	buf_printf(&conclusion->why, "busy %.*f %% of ",
	           (busy < 1 && busy > 0) || (busy > 99 && busy < 100), busy);
	buf_duration(&conclusion->why, span_ns);
	if (!gpu->idle_ns && gpu->activities == 1) {
		conclusion->verdict = "not known";
		buf_puts(&conclusion->what, "a single activity has no gaps");
		return;
	}
	if (busy >= BUSY_ENOUGH) {
		conclusion->verdict = "GPU-bound";
		buf_printf(&conclusion->what,
		           "without any gap it would take %.1f %% less time: faster kernels and "
		           "copies gain more",
		           100 - busy);
		return;
	}
	conclusion->verdict = reasons[most].verdict;
	conclusion->mostly = gaps_percent(sums[most].ns, gpu->idle_ns) < MOST_OF;
	buf_printf(&conclusion->why, "; %.0f %% %s", gaps_percent(sums[most].ns, span_ns),
	           reasons[most].why);
	advise(&conclusion->what, most, &sums[most]);
}
