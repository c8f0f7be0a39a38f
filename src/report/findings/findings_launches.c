// SPDX-License-Identifier: MIT
/*
 * Findings about launching: kernels so short that the GPU waits for the next launch, and, where
 * GPU times are not known, programs that launch and never wait.
 */
#include <stdlib.h>
#include <string.h>

#include "report/findings/findings_rules.h"
#include "report/findings/repeats.h"
#include "analysis/thread_ids.h"

#define THREADS_WITH_REPEATS 64 /* 128 KiB each */

/* ---- sequences that repeat ----------------------------------------------------------------- */

struct sequences {
	struct {
		struct repeats *repeats;
		const struct process *process;
	} * threads; /* by id */
	size_t n;
	size_t followed;
};

static uint64_t thing_of(const struct call *call)
{
	uint64_t kernel = call->kernel ? call->kernel->id : call->args.handle;

	return kernel << 40 ^ (uint64_t)call->args.grid[0] << 16 ^
	       (uint64_t)call->args.grid[1] << 8 ^ call->args.grid[2] ^
	       (uint64_t)call->args.block[0] << 32;
}

static void follow(struct sequences *all, const struct finding_call *call)
{
	if (call->thread == THREAD_ID_OTHERS)
		return;
	all->threads = by_id_room(all->threads, &all->n, sizeof(*all->threads), call->thread);
	if (!all->threads[call->thread].repeats) {
		if (all->followed >= THREADS_WITH_REPEATS)
			return;
		all->followed++;
		all->threads[call->thread].repeats = repeats_new();
		all->threads[call->thread].process = call->process;
	}
	repeats_add(all->threads[call->thread].repeats, thing_of(call->call));
}

static void free_sequences(struct sequences *all)
{
	for (size_t i = 0; i < all->n; i++)
		repeats_free(all->threads[i].repeats);
	free(all->threads);
}

/* Appends what the process's busiest thread repeats, if it does. Whether it does. */
static bool say_sequence(const struct sequences *all, const struct process *process,
                         struct buf *text)
{
	const struct repeats *most = NULL;
	uint64_t distance, repeated;

	for (size_t i = 0; i < all->n; i++) {
		const struct repeats *one = all->threads[i].repeats;

		if (one && all->threads[i].process == process &&
		    (!most || repeats_seen(one) > repeats_seen(most)))
			most = one;
	}
	if (!most)
		return false;
	distance = repeats_distance(most, &repeated);
	if (!distance || (double)repeated < LIMIT_REPEATS_SHARE * (double)repeats_seen(most))
		return false;
	buf_printf(text, "; %.0f %% of the launches of its busiest thread repeat a sequence of ",
	           100 * (double)repeated / (double)repeats_seen(most));
	buf_u64(text, distance);
	buf_puts(text, distance == 1 ? " launch" : " launches");
	return true;
}

static const char *launch_advice(bool repeats)
{
	return repeats ? "capture the sequence in a CUDA graph and launch that (torch.compile with "
	                 "mode=\"reduce-overhead\", torch.cuda.CUDAGraph), or fuse kernels"
	               : "fuse kernels, or give each more work (larger batches); what repeats can "
	                 "be captured in a CUDA graph";
}

/* ---- gaps before kernels ------------------------------------------------------------------- */

/*
 * A kernel that ran beside others can end after them, and be told after them: what looked like a
 * gap between them was none. So gaps wait until there are many, or all is known.
 */
#define GAPS_OPEN    2048
#define GAPS_DEVICES 8 /* told apart, by number modulo this */

struct launch_pause {
	uint64_t begin_ns, end_ns;
	struct finding_example before; /* the kernel that ended it */
};

struct launch_pauses {
	struct launch_pause *open; /* a ring */
	size_t first, n;
};

static struct launch_pause *gap_at(struct launch_pauses *gaps, size_t i)
{
	return &gaps->open[(gaps->first + i) % GAPS_OPEN];
}

static void settle_oldest(struct launch_pauses *gaps, struct finding_cases *cases)
{
	struct launch_pause *gap = gap_at(gaps, 0);

	gap->before.cost_ns = gap->end_ns - gap->begin_ns;
	finding_case(cases, &gap->before);
	gaps->first = (gaps->first + 1) % GAPS_OPEN;
	gaps->n--;
}

static void open_gap(struct launch_pauses *gaps, const struct launch_pause *gap,
                     struct finding_cases *cases)
{
	if (!gaps->open)
		gaps->open = xcalloc(GAPS_OPEN, sizeof(*gaps->open));
	if (gaps->n == GAPS_OPEN)
		settle_oldest(gaps, cases);
	*gap_at(gaps, gaps->n++) = *gap;
}

/* Something ran from then on, and until after all of the gaps. */
static void fill_gaps(struct launch_pauses *gaps, uint64_t begin_ns)
{
	for (; gaps->n; gaps->n--) {
		struct launch_pause *last = gap_at(gaps, gaps->n - 1);

		if (last->end_ns > begin_ns && last->begin_ns < begin_ns)
			last->end_ns = begin_ns;
		if (last->end_ns <= begin_ns)
			return;
	}
}

/* ---- short kernels ------------------------------------------------------------------------- */

struct small_kernels {
	uint64_t n, n_short, short_ns, call_ns;
	/* Before short ones, for which the host was not ahead. */
	struct launch_pauses open[GAPS_DEVICES];
	struct finding_cases gaps; /* all others of them */
};

struct short_kernels {
	struct small_kernels *processes;
	size_t n_processes;
	struct sequences sequences;
};

static void *make_short(void)
{
	return xcalloc(1, sizeof(struct short_kernels));
}

static void free_short(void *state)
{
	struct short_kernels *all = state;

	free_sequences(&all->sequences);
	for (size_t i = 0; i < all->n_processes * GAPS_DEVICES; i++)
		free(all->processes[i / GAPS_DEVICES].open[i % GAPS_DEVICES].open);
	free(all->processes);
	free(all);
}

static void short_event(void *state, const struct event *event)
{
	struct short_kernels *all = state;

	if (event->type == EVENT_ACTIVITY && event->process->id < all->n_processes)
		fill_gaps(&all->processes[event->process->id]
		                   .open[event->activity->device % GAPS_DEVICES],
		          event->activity->begin_ns);
}

static void short_call(void *state, const struct finding_call *call)
{
	struct short_kernels *all = state;

	if (call->call->op == OP_LAUNCH)
		follow(&all->sequences, call);
}

/* When the GPU fell idle, the call had not returned: it waited for this launch. */
static uint64_t gap_of(const struct work_done *done, const struct work_call *call)
{
	uint64_t gap_ns;

	if (!done->idle_since_ns || call->end_ns <= done->idle_since_ns)
		return 0;
	gap_ns = done->activity->begin_ns - done->idle_since_ns;
	return gap_ns <= LIMIT_LAUNCH_GAP_NS ? gap_ns : 0;
}

static void short_asked(void *state, const struct work_done *done, const struct work_call *call,
                        const struct stack *stack)
{
	uint64_t ns = activity_duration_ns(done->activity), call_ns;
	struct short_kernels *all = state;
	struct small_kernels *kernels;

	if (done->activity->kind != ACTIVITY_KERNEL || call->op != OP_LAUNCH)
		return; /* a graph's are launched together already */
	kernels = FINDING_AT(all->processes, all->n_processes, call->process->id);
	kernels->n++;
	call_ns = work_call_ns(call);
	if (ns > LIMIT_SHORT_KERNEL_NS && ns > call_ns)
		return;
	kernels->n_short++;
	kernels->short_ns += ns;
	kernels->call_ns += call_ns;
	if (gap_of(done, call))
		open_gap(&kernels->open[done->activity->device % GAPS_DEVICES],
		         &(struct launch_pause){ .begin_ns = done->idle_since_ns,
		                                 .end_ns = done->activity->begin_ns,
		                                 .before = { .function = call->function,
		                                             .kernel = done->activity->kernel,
		                                             .tid = call->tid,
		                                             .begin_ns = call->begin_ns,
		                                             .duration_ns = call_ns,
		                                             .stack = stack } },
		         &kernels->gaps);
}

static void settle_all(struct small_kernels *kernels)
{
	for (size_t i = 0; i < GAPS_DEVICES; i++) {
		while (kernels->open[i].n)
			settle_oldest(&kernels->open[i], &kernels->gaps);
	}
}

static bool are_short(const struct finding_process *process, const struct small_kernels *kernels)
{
	return kernels->n_short >= LIMIT_SHORT_KERNELS &&
	       (double)kernels->n_short >= LIMIT_SHORT_SHARE * (double)kernels->n &&
	       finding_is_worth(process, kernels->gaps.cost_ns);
}

static void judge_short(void *state, const struct finding_rule *rule,
                        const struct finding_verdicts *verdicts)
{
	struct short_kernels *all = state;

	for (size_t i = 0; i < all->n_processes; i++) {
		const struct finding_process *process = finding_process(verdicts, i);
		struct small_kernels *kernels = &all->processes[i];
		struct buf text = { 0 };
		struct finding *finding;
		bool repeats;

		settle_all(kernels);
		if (!process || !are_short(process, kernels))
			continue;
		buf_printf(&text,
		           "%llu of %llu kernels ran for 10 us or less, or for less than their "
		           "launch took: ",
		           (unsigned long long)kernels->n_short, (unsigned long long)kernels->n);
		buf_duration(&text, kernels->short_ns / kernels->n_short);
		buf_puts(&text, " on average, their launches ");
		buf_duration(&text, kernels->call_ns / kernels->n_short);
		buf_puts(&text, "; before ");
		buf_u64(&text, kernels->gaps.count);
		buf_puts(&text, " of them the GPU was idle and the launch had not yet returned");
		repeats = say_sequence(&all->sequences, process->process, &text);
		finding = findings_add(verdicts, rule, process);
		finding_set_cases(verdicts, finding, &kernels->gaps);
		finding->count = kernels->n_short;
		finding_say(finding, &text);
		finding->estimate = "the idle time before those kernels, where it was 1 ms or less";
		finding->suggestion = launch_advice(repeats);
	}
}

const struct finding_rule rule_short_kernels = {
	.name = "short_kernels",
	.title = "many short kernels: the GPU waits for launches",
	.needs = NEEDS_DURATIONS | NEEDS_GPU,
	.create = make_short,
	.call = short_call,
	.event = short_event,
	.asked = short_asked,
	.judge = judge_short,
	.free = free_short,
};

/* ---- the same, from calls alone ------------------------------------------------------------ */

/* Of all threads of a process. */
struct launcher {
	uint64_t waiting_ns;
	struct finding_cases launches;
};

struct launch_calls {
	struct launcher *processes;
	size_t n;
	struct sequences sequences;
};

static void *make_launch_calls(void)
{
	return xcalloc(1, sizeof(struct launch_calls));
}

static void free_launch_calls(void *state)
{
	struct launch_calls *all = state;

	free_sequences(&all->sequences);
	free(all->processes);
	free(all);
}

static bool waits(const struct finding_call *call, uint64_t ns)
{
	enum api_op op = call->call->op;

	return op == OP_SYNC || (call->launch && ns > LIMIT_BLOCKED_NS) ||
	       ((op == OP_COPY || op == OP_SET) && !api_is_async(call->call->function->api));
}

static void launch_calls_call(void *state, const struct finding_call *call)
{
	struct finding_example example = finding_example_of(call);
	struct launch_calls *all = state;
	struct launcher *process = FINDING_AT(all->processes, all->n, call->process->id);

	if (waits(call, example.duration_ns))
		process->waiting_ns += example.duration_ns;
	else if (call->launch)
		finding_case(&process->launches, &example);
	if (call->call->op == OP_LAUNCH)
		follow(&all->sequences, call);
}

static bool only_launches(const struct finding_process *process, const struct launcher *launcher)
{
	double all_ns = (double)process->span_ns;

	return !process->gpu_times && /* else short_kernels knows better */
	       launcher->launches.count >= LIMIT_MANY_LAUNCHES &&
	       (double)launcher->launches.cost_ns >= LIMIT_LAUNCH_SHARE * all_ns &&
	       (double)launcher->waiting_ns <= LIMIT_WAIT_SHARE * all_ns;
}

static void judge_launch_calls(void *state, const struct finding_rule *rule,
                               const struct finding_verdicts *verdicts)
{
	struct launch_calls *all = state;

	for (size_t i = 0; i < all->n; i++) {
		const struct finding_process *process = finding_process(verdicts, i);
		const struct finding_cases *launches = &all->processes[i].launches;
		struct buf text = { 0 };
		struct finding *finding;
		bool repeats;

		if (!process || !only_launches(process, &all->processes[i]))
			continue;
		buf_u64(&text, launches->count);
		buf_puts(&text, " launches of ");
		buf_duration(&text, launches->cost_ns / launches->count);
		buf_puts(&text, " each, ");
		buf_duration(&text, launches->cost_ns);
		buf_puts(&text,
		         " together, while all threads waited for the GPU for no more than ");
		buf_duration(&text, all->processes[i].waiting_ns);
		repeats = say_sequence(&all->sequences, process->process, &text);
		finding = findings_add(verdicts, rule, process);
		finding_set_cases(verdicts, finding, launches);
		finding_say(finding, &text);
		finding->estimate =
			"the time in these calls. The GPU kept up, as hardly anybody waited for "
			"it; only GPU times (--gpu) tell how long it was idle";
		finding->suggestion = launch_advice(repeats);
	}
}

const struct finding_rule rule_launch_calls = {
	.name = "launch_calls",
	.title = "many launches, and nobody who waits for the GPU",
	.needs = NEEDS_DURATIONS,
	.create = make_launch_calls,
	.call = launch_calls_call,
	.judge = judge_launch_calls,
	.free = free_launch_calls,
};
