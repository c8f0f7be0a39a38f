// SPDX-License-Identifier: MIT
#include "report/gaps/gaps_report.h"

#define BUSY_ENOUGH 90      /* percent: more cannot be gained by asking earlier */
#define MOST_OF     50      /* percent of the idle time that make a cause the one to name */
#define STEP_NS     1000000 /* gaps of the host that are longer on average are not single launches' */

double gaps_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

static const enum gaps_reason reason_of[GAP_CAUSES] = {
	[GAP_HOST] = GAPS_HOST,          [GAP_SYNC] = GAPS_SYNC,
	[GAP_COPY] = GAPS_COPY,          [GAP_LATENCY] = GAPS_HOST,
	[GAP_WAITING] = GAPS_WAITING,    [GAP_TURNAROUND] = GAPS_TURNAROUND,
	[GAP_OTHER_WORK] = GAPS_UNKNOWN, [GAP_UNKNOWN] = GAPS_UNKNOWN,
};

static const struct {
	const char *verdict, *busy, *try;
} reasons[GAPS_REASONS] = {
	[GAPS_HOST] = { "launch-bound", "waiting for the host to ask", NULL },
	[GAPS_SYNC] = { "synchronisation-bound", "lost to waits of the host",
	                "ask for the next work before waiting, or wait less often" },
	[GAPS_COPY] = { "copy-bound", "waiting for the host, which copied",
	                "pinned memory and asynchronous copies let the host go on" },
	[GAPS_WAITING] = { "stream-bound", "streams waiting for events or each other",
	                   "the longest gaps below name what they waited for" },
	[GAPS_TURNAROUND] = { "many small kernels", "between one and the next",
	                      "fewer and larger kernels, or graphs, have fewer of them" },
	[GAPS_UNKNOWN] = { "not known", "idle, and nothing recorded tells why",
	                   "perhaps records were lost, or a program that uses the GPU was not "
	                   "traced: record again with that program, and a larger --ring-size" },
};

static const char try_fewer[] =
	"fewer and larger launches: fused kernels, CUDA graphs (torch.compile with "
	"mode=\"reduce-overhead\"), larger batches";
static const char try_host[] =
	"prepare work while the GPU runs (loading and transforming data in other threads or "
	"processes)";
static const char try_host_unseen[] =
	"prepare work while the GPU runs (loading and transforming data in other threads or "
	"processes); a profiler of the CPU shows what the host does";

struct gaps_conclusion_sum {
	uint64_t ns, count, long_ns, long_count; /* long: of the threshold on */
	uint64_t host_ns, cuda_ns, most_ns;
	const struct function *most;
};

static void sum_up(const struct gap_line *gpu, struct gaps_conclusion_sum *sums)
{
	for (size_t i = 0; i < GAP_CAUSES; i++) {
		const struct gap_sum *from = &gpu->steady[i];
		struct gaps_conclusion_sum *sum = &sums[reason_of[i]];

		sum->ns += from->ns + from->short_ns;
		sum->count += from->count + from->short_count;
		sum->long_ns += from->ns;
		sum->long_count += from->count;
		sum->host_ns += from->host_ns;
		sum->cuda_ns += from->cuda_ns;
		if (from->most_ns > sum->most_ns) {
			sum->most_ns = from->most_ns;
			sum->most = from->most;
		}
	}
}

uint64_t gaps_steady_ns(const struct gap_line *gpu)
{
	return gap_line_span_ns(gpu) - gpu->apart_ns;
}

bool gaps_is_busy(const struct gap_line *gpu)
{
	return gaps_percent(gpu->busy_ns, gaps_steady_ns(gpu)) >= BUSY_ENOUGH;
}

static void add_percent(struct buf *out, double percent)
{
	buf_printf(out, "%.*f %%", (percent < 1 && percent > 0) || (percent > 99 && percent < 100),
	           percent);
}

static void add_gaps(struct buf *out, const struct gaps_conclusion_sum *sum)
{
	buf_u64(out, sum->count);
	buf_printf(out, " gap%s of ", sum->count == 1 ? "" : "s");
	buf_duration(out, sum->count ? sum->ns / sum->count : 0);
	if (sum->count != 1)
		buf_puts(out, " on average");
}

/* Small gaps say that launches take long, large ones that the host is busy with something else. */
static void explain_host(const struct gaps_conclusion_sum *sum, struct gaps_conclusion *conclusion)
{
	struct buf *out = &conclusion->why;
	bool launches = sum->host_ns < sum->ns / 2;
	uint64_t long_ns = sum->long_count ? sum->long_ns / sum->long_count : 0;

	if (launches)
		buf_puts(out, ", most of it while the host was asking");
	else
		buf_printf(out, "; until it asked, the host was outside of CUDA for %.0f %%",
		           gaps_percent(sum->host_ns - sum->cuda_ns, sum->host_ns));
	if (sum->most && sum->most_ns >= sum->ns / 10)
		buf_printf(out, launches ? ", in %s" : "; of calls, %s took most", sum->most->name);
	conclusion->launches = launches || long_ns < STEP_NS;
	conclusion->try = conclusion->launches ? try_fewer : try_host;
	conclusion->asking = launches;
}

static void explain(enum gaps_reason reason, const struct gaps_conclusion_sum *sum,
                    struct gaps_conclusion *conclusion)
{
	add_gaps(&conclusion->why, sum);
	conclusion->try = reasons[reason].try;
	if (reason == GAPS_HOST)
		explain_host(sum, conclusion);
	else if (sum->most && (reason == GAPS_SYNC || reason == GAPS_COPY))
		buf_printf(&conclusion->why, ", most in %s", sum->most->name);
}

/* "apart from 3 gaps of 5.100 s, the longest of 4.222 s at 6.234 s (host); with them, ..." */
static void tell_apart(const struct gap_line *gpu, uint64_t begin_ns, struct buf *out)
{
	const struct gpu_gap *longest = gpu->apart;
	size_t n = gpu->n_apart;

	if (!n)
		return;
	buf_puts(out, "apart from ");
	if (n > 1) {
		buf_printf(out, "%zu gaps of ", n);
		buf_duration(out, gpu->apart_ns);
		buf_puts(out, " in all, the longest ");
	} else {
		buf_puts(out, "one gap ");
	}
	buf_puts(out, "of ");
	buf_duration(out, gpu_gap_ns(longest));
	buf_puts(out, " at ");
	buf_duration(out, longest->begin_ns > begin_ns ? longest->begin_ns - begin_ns : 0);
	buf_printf(out, " (cause: %s", gap_cause_name(longest->verdict.cause));
	if (longest->place)
		buf_printf(out, ", %.0f %% in %s",
		           gaps_percent(longest->place_ns, gpu_gap_ns(longest)), longest->place);
	buf_printf(out, "); with %s, busy ", n > 1 ? "them" : "it");
	add_percent(out, gaps_percent(gpu->busy_ns, gap_line_span_ns(gpu)));
	buf_puts(out, " of ");
	buf_duration(out, gap_line_span_ns(gpu));
}

static void say_busy(const struct gap_line *gpu, struct buf *out)
{
	uint64_t ns = gaps_steady_ns(gpu);

	buf_puts(out, "busy ");
	add_percent(out, gaps_percent(gpu->busy_ns, ns));
	buf_puts(out, " of ");
	buf_duration(out, ns);
}

static void say_where(enum gaps_reason reason, struct gaps_conclusion *conclusion,
                      const struct stack_places *places)
{
	struct buf *out = &conclusion->where;
	const struct gap_sampling *known = &conclusion->host.known;
	bool calls = conclusion->calls.n && (reason != GAPS_HOST || conclusion->asking);

	if (calls) {
		buf_puts(out, reason == GAPS_HOST ? "the calls that asked: "
		                                  : "the calls that it waited in: ");
		gaps_add_calls(out, &conclusion->calls, places, GAPS_PLACES_TOLD);
		buf_puts(out, "; the host meanwhile: ");
	}
	if (gap_host_trust(known) <= GAP_TRUST_GUESS) {
		gaps_add_doubt(out, &conclusion->host, places);
		return;
	}
	gaps_add_places(out, &conclusion->host, places, GAPS_PLACES_TOLD);
	buf_puts(out, "; ");
	gaps_add_trust(out, known);
	buf_puts(out, " of it");
	if (gap_host_trust(known) == GAP_TRUST_PARTLY)
		buf_puts(out, ", and in the rest the thread waited for a CPU, was blocked only "
		              "briefly, or "
		              "samples are lost");
}

static void tell_where(const struct gap_line *gpu, enum gaps_reason reason,
                       struct stack_places *places, struct gaps_conclusion *conclusion)
{
	unsigned causes = 0;

	for (size_t i = 0; i < GAP_CAUSES; i++)
		causes |= (reason_of[i] == reason) << i;
	conclusion->has_samples = true;
	gaps_host_of(gpu, causes, places, &conclusion->host);
	gaps_calls_of(gpu, causes, places, &conclusion->calls);
	if (reason <= GAPS_COPY)
		say_where(reason, conclusion, places);
}

static void conclude_idle(const struct gap_line *gpu, struct stack_places *places,
                          struct gaps_conclusion *conclusion)
{
	struct gaps_conclusion_sum sums[GAPS_REASONS] = { 0 };
	enum gaps_reason most = 0;

	sum_up(gpu, sums);
	for (enum gaps_reason i = 1; i < GAPS_REASONS; i++)
		most = sums[i].ns > sums[most].ns ? i : most;
	conclusion->verdict = reasons[most].verdict;
	conclusion->mostly = gaps_percent(sums[most].ns, gpu->idle_ns - gpu->apart_ns) < MOST_OF;
	buf_printf(&conclusion->busy, "; %.0f %% %s",
	           gaps_percent(sums[most].ns, gaps_steady_ns(gpu)), reasons[most].busy);
	explain(most, &sums[most], conclusion);
	conclusion->reason = most;
	conclusion->reason_ns = sums[most].ns;
	conclusion->count = sums[most].count;
	conclusion->call = sums[most].most_ns >= sums[most].ns / 10 ? sums[most].most : NULL;
	if (places)
		tell_where(gpu, most, places, conclusion);
	else if (conclusion->try == try_host)
		conclusion->try = try_host_unseen;
}

void gaps_conclude(const struct gap_line *gpu, uint64_t begin_ns, struct stack_places *places,
                   struct gaps_conclusion *conclusion)
{
	double busy = gaps_percent(gpu->busy_ns, gaps_steady_ns(gpu));

	say_busy(gpu, &conclusion->busy);
	tell_apart(gpu, begin_ns, &conclusion->apart);
	conclusion->steady_ns = gaps_steady_ns(gpu);
	conclusion->idle_ns = gpu->idle_ns - gpu->apart_ns;
	if (!gpu->idle_ns && gpu->activities == 1) {
		conclusion->verdict = "not known";
		conclusion->reason = GAPS_SINGLE;
		buf_puts(&conclusion->why, "a single activity has no gaps");
	} else if (gaps_is_busy(gpu)) {
		conclusion->verdict = "GPU-bound";
		conclusion->reason = GAPS_BUSY;
		buf_printf(&conclusion->why, "without any gap it would take %.1f %% less time",
		           100 - busy);
		conclusion->try = "faster kernels and copies gain more: 'cuscope report FILE "
				  "cuda_gpu_kern_sum' has them by time";
	} else {
		conclude_idle(gpu, places, conclusion);
	}
}

void gaps_conclusion_free(struct gaps_conclusion *conclusion)
{
	buf_free(&conclusion->busy);
	buf_free(&conclusion->apart);
	buf_free(&conclusion->why);
	buf_free(&conclusion->where);
	gap_host_free(&conclusion->host);
	gap_host_free(&conclusion->calls);
}
