// SPDX-License-Identifier: MIT
/* Findings about what the host waited for while GPUs waited for it: the report gaps has it all. */
#include <stdlib.h>

#include "report/findings/findings_rules.h"
#include "report/gaps/gaps_conclusion.h"

static void *make_nothing(void)
{
	return xcalloc(1, 1);
}

/* The one that was busy on this GPU for most of the time. */
static const struct finding_process *process_on(const struct finding_verdicts *verdicts,
                                                uint32_t device)
{
	const struct gap_line *const *rows, *most = NULL;
	size_t n;

	rows = gaps_processes(verdicts->gaps, &n);
	for (size_t i = 0; i < n; i++) {
		if (rows[i]->device == device && (!most || rows[i]->busy_ns > most->busy_ns))
			most = rows[i];
	}
	return most ? finding_process(verdicts, most->process->id) : NULL;
}

static void say(struct finding *finding, const struct finding_verdicts *verdicts,
                const struct gap_line *gpu, enum gap_wait wait)
{
	const struct gap_wait_sum *sum = &gpu->waits->of[wait];
	struct buf text = { 0 };

	buf_printf(&text, "GPU %u: in its gaps the host ", gpu->device);
	gaps_add_wait(&text, gpu->waits, wait, gaps_whos(verdicts->gaps),
	              gaps_places(verdicts->gaps));
	buf_puts(&text, ": ");
	buf_duration(&text, sum->ns);
	buf_puts(&text, " of ");
	buf_duration(&text, gpu->waits->host_ns);
	buf_puts(&text, ", in ");
	finding_count(&text, sum->count, "wait");
	buf_puts(&text, ", of which the longest took ");
	buf_duration(&text, sum->longest_ns);
	finding_say(finding, &text);
}

static const char *suggestion_for(enum gap_wait wait)
{
	switch (wait) {
	case GAP_WAIT_DISK:
		return "read ahead in another thread or process, in larger pieces, or keep the "
		       "data in memory";
	case GAP_WAIT_NETWORK:
		return "ask for the next piece before it is needed, in another thread";
	case GAP_WAIT_MEMORY:
		return "read files rather than map them, or touch their pages ahead (MAP_POPULATE, "
		       "madvise); see whether the machine is short of memory";
	case GAP_WAIT_CPU:
		return "give the threads that launch a CPU of their own (taskset, cpusets, fewer "
		       "workers), or move what has it elsewhere";
	default:
		return "more loaders, or a longer queue between them and the thread that launches";
	}
}

static void judge_wait(const struct finding_verdicts *verdicts, const struct finding_rule *rule,
                       const struct gap_line *gpu, enum gap_wait wait)
{
	const struct gap_wait_sum *sum = &gpu->waits->of[wait];
	const struct finding_process *process = process_on(verdicts, gpu->device);
	struct finding *finding;

	if (!process || !finding_is_worth(process, sum->ns) || !sum->count ||
	    (double)sum->ns < LIMIT_HOST_WAIT_SHARE * (double)gpu->waits->host_ns)
		return;
	finding = findings_add(verdicts, rule, process);
	finding->device = gpu->device;
	finding->of_device = true;
	finding->count = sum->count;
	finding->lost_ns = sum->ns;
	finding->lost_known = true;
	say(finding, verdicts, gpu, wait);
	finding->estimate = "the waits within gaps of this GPU that are due to the host; what "
			    "it waits for may still take that long beside the GPU's work";
	finding->suggestion = suggestion_for(wait);
}

static const struct gap_line *const *gpus_of(const struct finding_verdicts *verdicts,
                                             const struct finding_rule *rule, size_t *n)
{
	*n = 0;
	if (!verdicts->gaps) {
		findings_cannot_judge(verdicts, rule, "needs record --host-waits");
		return NULL;
	}
	return gaps_devices(verdicts->gaps, n);
}

static void judge_waits(void *state, const struct finding_rule *rule,
                        const struct finding_verdicts *verdicts)
{
	static const enum gap_wait kinds[] = { GAP_WAIT_DISK, GAP_WAIT_NETWORK, GAP_WAIT_MEMORY,
		                               GAP_WAIT_LOCK, GAP_WAIT_PROCESS };
	const struct gap_line *const *gpus;
	size_t n;

	(void)state;
	gpus = gpus_of(verdicts, rule, &n);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			judge_wait(verdicts, rule, gpus[i], kinds[k]);
	}
}

const struct finding_rule rule_host_waits = {
	.name = "host_waits",
	.title = "waits of the host that leave the GPU idle",
	.needs = NEEDS_GPU,
	.create = make_nothing,
	.judge = judge_waits,
	.free = free,
};

static void judge_run_queue(void *state, const struct finding_rule *rule,
                            const struct finding_verdicts *verdicts)
{
	const struct gap_line *const *gpus;
	size_t n;

	(void)state;
	gpus = gpus_of(verdicts, rule, &n);
	for (size_t i = 0; i < n; i++)
		judge_wait(verdicts, rule, gpus[i], GAP_WAIT_CPU);
}

const struct finding_rule rule_run_queue = {
	.name = "run_queue",
	.title = "others have the CPU of the thread that launches",
	.needs = NEEDS_GPU,
	.create = make_nothing,
	.judge = judge_run_queue,
	.free = free,
};
