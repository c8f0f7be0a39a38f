// SPDX-License-Identifier: MIT
/* --rank, --job, --container, --pod, --gpu-of: processes by what people call them. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/process.h"
#include "base/vec.h"
#include "gpus/gpus.h"
#include "identity/process_read.h"
#include "probe/helper.h"

#define PATIENCE_NS 5000000000ull /* for the driver to say who uses a GPU */
#define LOOK_NS     10000000000ull
#define ID_LEAST    4    /* characters of a container's id, as Docker's users have them */
#define PIDS_MOST   4096 /* that are chosen */
#define ONCE_NS     3600000000000ull
#define TOLD_OF     "the driver does not tell of all processes (512 at most)"
#define PASSES_TOLD 8 /* that are not traced, each by itself */

bool cli_whose_given(const struct cli_whose *whose)
{
	return whose->rank || whose->job || whose->container || whose->pod || whose->gpu;
}

bool cli_whose_is_empty(const struct cli_whose *whose)
{
	const char *const words[] = { whose->rank, whose->job, whose->container, whose->pod,
		                      whose->gpu };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] && (!*words[i] || !strcmp(words[i], "/")))
			return true;
	return false;
}

/* "ns/name", or the name alone. */
static bool is_pod(const char *wanted, const struct process_identity *identity)
{
	const char *slash = strchr(wanted, '/');

	if (!slash)
		return !strcmp(wanted, identity->pod);
	return !strcmp(slash + 1, identity->pod) &&
	       strlen(identity->namespace) == (size_t)(slash - wanted) &&
	       !memcmp(identity->namespace, wanted, (size_t)(slash - wanted));
}

static bool is_container(const char *wanted, const struct process_identity *identity)
{
	size_t bytes = strlen(wanted);

	return !strcmp(wanted, identity->container_name) ||
	       !strcmp(wanted, identity->container_id) ||
	       (bytes >= ID_LEAST && !strncmp(wanted, identity->container_id, bytes));
}

static bool is_wanted(const struct cli_whose *whose, const struct process_identity *identity)
{
	return (!whose->rank || !strcmp(whose->rank, identity->rank)) &&
	       (!whose->job || !strcmp(whose->job, identity->slurm_job)) &&
	       (!whose->container || is_container(whose->container, identity)) &&
	       (!whose->pod || is_pod(whose->pod, identity));
}

/* ---- who uses a GPU -------------------------------------------------------------------------- */

/* By its number or its UUID, of which a beginning will do; GPUS_MAX: there is none. */
static size_t find_gpu(const struct gpus_sample *sample, const char *wanted)
{
	uint64_t number;

	if (parse_number(wanted, UINT64_MAX, &number))
		return number < sample->n ? (size_t)number : GPUS_MAX;
	for (size_t i = 0; i < sample->n && strlen(wanted) > 4; i++)
		if (!strncmp(sample->gpus[i].uuid, wanted, strlen(wanted)))
			return i;
	return GPUS_MAX;
}

static int add_pids_of_gpu(struct target_choice *choice, const struct gpus_sample *sample,
                           struct err *err)
{
	const char *wanted = choice->whose.gpu;
	size_t gpu = find_gpu(sample, wanted);

	if (!sample->n || (!sample->n_processes && *sample->why))
		return err_set(err, ENODEV, "who uses a GPU is not known: %s",
		               *sample->why ? sample->why : "there is none");
	if (gpu == GPUS_MAX)
		return err_set(err, ENODEV, "there is no GPU %s: there are %zu, from 0 on", wanted,
		               sample->n);
	for (size_t i = 0; i < sample->n_processes; i++) {
		if (!(sample->processes[i].gpus & 1u << gpu))
			continue;
		*VEC_ADD(choice->pids, choice->n_pids) = (int)sample->processes[i].pid;
	}
	if (!choice->n_pids && sample->processes_cut)
		return err_set(err, ENODEV, "who uses GPU %s is not known: " TOLD_OF, wanted);
	if (!choice->n_pids)
		return err_set(err, ESRCH, "no process uses GPU %s", wanted);
	if (sample->processes_cut)
		cli_say("there may be more processes that use GPU %s: " TOLD_OF, wanted);
	return 0;
}

static int take_gpu(struct target_choice *choice, struct err *err)
{
	struct gpus *gpus = gpus_new(ONCE_NS);
	struct gpus_sample sample = { 0 };
	int rc;

	if (!gpus_read(gpus, PATIENCE_NS, &sample))
		snprintf(sample.why, sizeof(sample.why), "the driver does not answer");
	gpus_free(gpus);
	rc = add_pids_of_gpu(choice, &sample, err);
	return rc;
}

/* ---- who they are ---------------------------------------------------------------------------- */

static void keep_wanted(struct target_choice *choice, struct process_reader *reader)
{
	struct process_identity identity;
	size_t n = 0;

	for (size_t i = 0; i < choice->n_pids; i++)
		if (process_reader_read(reader, choice->pids[i], 0, &identity) &&
		    is_wanted(&choice->whose, &identity))
			choice->pids[n++] = choice->pids[i];
	choice->n_pids = n;
}

/* False: there was no time, or no room, for all. */
static bool find_wanted(struct target_choice *choice, struct process_reader *reader)
{
	AT_END(process_list_end) DIR *all = process_list(0);
	uint64_t until_ns = clock_now_ns() + LOOK_NS;
	struct process_identity identity;
	pid_t pid;

	while ((pid = process_next(all))) {
		if (choice->n_pids == PIDS_MOST || clock_now_ns() >= until_ns)
			return false;
		if (!process_reader_read(reader, pid, 0, &identity) ||
		    !is_wanted(&choice->whose, &identity))
			continue;
		*VEC_ADD(choice->pids, choice->n_pids) = pid;
	}
	return true;
}

static int say_none(const struct cli_whose *whose, struct err *err)
{
	return err_set(err, ESRCH, "no process%s%s%s%s%s%s%s%s%s%s is there",
	               whose->rank ? " of rank " : "", whose->rank ? whose->rank : "",
	               whose->job ? " of job " : "", whose->job ? whose->job : "",
	               whose->container ? " of container " : "",
	               whose->container ? whose->container : "", whose->pod ? " of pod " : "",
	               whose->pod ? whose->pod : "", whose->gpu ? " on GPU " : "",
	               whose->gpu ? whose->gpu : "");
}

/* Whoever says that he is one of them, and ends, or cannot be traced, is not to deny the others. */
static void pass_over(const char *why)
{
	static unsigned told;

	if (told < PASSES_TOLD)
		cli_say("%s", why);
	else if (told == PASSES_TOLD)
		cli_say("there are more that are not traced");
	told += told <= PASSES_TOLD;
}

int cli_whose_settle(struct target_choice *choice, struct err *err)
{
	const struct process_reader_options options = { 0 };
	struct process_reader *reader;
	int rc = helper_begin(err);

	rc = rc ? rc : choice->whose.gpu ? take_gpu(choice, err) : 0;
	if (rc)
		return rc;
	reader = process_reader_new(&options);
	if (!reader)
		return err_set(err, errno, "/proc: %s", strerror(errno));
	if (choice->whose.gpu)
		keep_wanted(choice, reader);
	else if (!find_wanted(choice, reader))
		cli_say("there may be more processes that are meant: not all could be looked at");
	process_reader_free(reader);
	if (!choice->target.pass)
		choice->target.pass = pass_over;
	return choice->n_pids ? 0 : say_none(&choice->whose, err);
}
