// SPDX-License-Identifier: MIT
#include "node/source_identities.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "identity/process_identities.h"
#include "node/process_kubelet.h"
#include "identity/process_identity.h"

#define EARLY_MOST  (PROCESS_IDENTITIES_MAX / 2) /* places for those without series */
#define EARLY_SHARE (EARLY_MOST * 2 / 5)         /* of them, of a user's */

/* The thread begins with the first page: what the capture forks comes before threads. */
struct source_identities {
	struct process_identities *identities; /* NULL: not begun, or it cannot */
	struct process_kubelet *kubelet;       /* NULL: it is not asked */
	bool tried;
	struct process_label_choice choice;
};

static const struct metric_family reads = { "cuscope_agent_identity_reads", METRIC_COUNTER, NULL,
	                                    "How often it was read who a process is, by outcome; "
	                                    "refused: not tried, too many processes; "
	                                    "over_share: of one user" };

static const struct metric_family kubelet_reads = {
	"cuscope_agent_kubelet_reads", METRIC_COUNTER, NULL,
	"How often the kubelet was asked for the names of pods, by outcome"
};
static const struct metric_family kubelet_pods = { "cuscope_agent_kubelet_pods", METRIC_GAUGE, NULL,
	                                           "Pods whose names the kubelet has told" };

void *source_identities_begin(const struct node_settings *settings)
{
	return xcalloc(1, sizeof(struct source_identities));
}

void source_identities_end(void *state)
{
	struct source_identities *source = state;

	process_kubelet_free(source->kubelet);
	process_identities_free(source->identities);
	free(source);
}

/* ---- settings ------------------------------------------------------------------------------ */

/* The names were checked with the settings. */
static struct process_label_choice choice_of(const struct node_settings *settings)
{
	struct process_label_choice choice;

	memset(&choice, 0, sizeof(choice));
	for (size_t i = 0; i < settings->label_env.n; i++)
		process_labels_choose(&choice, settings->label_env.words[i], NULL);
	return choice;
}

/* Once it was asked, it stays: what a container says of itself does not come back by SIGHUP. */
static void follow_kubelet(struct source_identities *source, const struct node_settings *settings)
{
	const struct process_kubelet_options options = { settings->kubelet_url,
		                                         settings->kubelet_token,
		                                         settings->kubelet_authority };

	if (!*options.url)
		return;
	if (source->kubelet)
		process_kubelet_change(source->kubelet, &options);
	else
		source->kubelet = process_kubelet_new(&options);
}

static void follow_settings(struct source_identities *source, const struct node_settings *settings)
{
	struct process_label_choice choice = choice_of(settings);
	struct process_identities_options options = { .reader = { .choice = choice } };

	if (!source->tried)
		source->identities = process_identities_new(&options, NULL);
	else if (source->identities && memcmp(&choice, &source->choice, sizeof(choice)))
		process_identities_choose(source->identities, &choice);
	source->tried = true;
	source->choice = choice;
}

/* ---- processes ----------------------------------------------------------------------------- */

/* A process may end before it gets a series, which it keeps for a while then. */
void source_identities_look(void *state, const struct node_view *view)
{
	struct source_identities *source = state;
	const struct watch_launches *launches = view->page->launches;
	struct process_identities_counts counts;
	const struct process *last = NULL;

	follow_settings(source, view->settings);
	follow_kubelet(source, view->settings);
	if (!source->identities || !launches)
		return;
	process_identities_count(source->identities, &counts);
	for (size_t i = 0; i < launches->n_kernels && counts.kept < EARLY_MOST; i++) {
		const struct watch_kernel *kernel = &launches->kernels[i];

		if (kernel->process == last || kernel->ended || !kernel->process->pid)
			continue;
		last = kernel->process;
		process_identities_expect(source->identities, (pid_t)last->pid, last->id,
		                          counts_person(view->counts, last), EARLY_SHARE);
		process_identities_count(source->identities, &counts);
	}
}

static bool find(const struct source_identities *source, const struct counted_process *process,
                 struct process_identity *who)
{
	pid_t pid = (pid_t)process->process->pid;

	if (!source->identities)
		return false;
	return process->ended
	               ? process_identities_end(source->identities, pid, process->process->id, who)
	               : process_identities_get(source->identities, pid, process->process->id, who);
}

static const char *word_of(enum identity_source by)
{
	static const char *const words[] = { [IDENTITY_UNKNOWN] = "",
		                             [IDENTITY_CGROUP] = "cgroup",
		                             [IDENTITY_KUBELET] = "kubelet",
		                             [IDENTITY_OWN_WORD] = "own_word" };

	return words[by];
}

metric_labels source_identities_labels(void *state, const struct counted_process *process,
                                       metric_labels base, struct metrics *metrics)
{
	const struct source_identities *source = state;
	struct process_label labels[PROCESS_LABELS];
	struct process_label_texts texts;
	struct process_identity who;
	size_t n;

	if (!find(source, process, &who))
		return base;
	if (source->kubelet)
		process_kubelet_name(source->kubelet, &who);
	n = process_labels(&who, &source->choice, &texts, labels);
	for (size_t i = 0; i < n; i++)
		if (strcmp(labels[i].name, "pid") && strcmp(labels[i].name, "process"))
			base = metrics_labels(metrics, base, labels[i].name, labels[i].value, NULL);
	return metrics_labels(
		metrics, base, "command", who.command, "container_id", who.container_id, "runtime",
		who.runtime, "container_by", word_of(who.container_by), "pod_uid", who.pod_uid,
		"pod_by", word_of(who.pod_by), "slurm_by", word_of(who.slurm_by), "unit", who.unit,
		"local_rank", who.local_rank, "world_size", who.world_size, NULL);
}

static void count_kubelet(struct process_kubelet *kubelet, struct metrics *metrics)
{
	uint64_t counts[PROCESS_CURL_COUNT];
	size_t pods = process_kubelet_count(kubelet, counts);

	metrics_family(metrics, &kubelet_reads);
	for (size_t i = 0; i < PROCESS_CURL_COUNT; i++)
		metrics_add_of(metrics, "outcome", process_curl_word(i), counts[i], 0);
	metrics_one(metrics, &kubelet_pods, pods, 0, 0);
}

void source_identities_count(void *state, struct metrics *metrics)
{
	const struct source_identities *source = state;
	struct process_identities_counts counts;

	if (source->kubelet)
		count_kubelet(source->kubelet, metrics);
	if (!source->identities)
		return;
	process_identities_count(source->identities, &counts);
	metrics_family(metrics, &reads);
	metrics_add_of(metrics, "outcome", "read", counts.reads - counts.gone, 0);
	metrics_add(metrics, metrics_labels(metrics, 0, "outcome", "gone", NULL), counts.gone, 0,
	            0);
	metrics_add(metrics, metrics_labels(metrics, 0, "outcome", "refused", NULL), counts.refused,
	            0, 0);
	metrics_add_of(metrics, "outcome", "over_share", counts.over_share, 0);
	metrics_add_of(metrics, "outcome", "no_environment", counts.unread, 0);
}
