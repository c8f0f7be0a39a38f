// SPDX-License-Identifier: MIT
/* What the flight recorder did, and what it takes. */
#include "node/sources.h"

#include "node/recorder.h"
#include "probe/person.h"

static const struct metric_family up = { "cuscope_recorder_up", METRIC_GAUGE, NULL,
	                                 "1 while calls are held by the flight recorder" };
static const struct metric_family starts = { "cuscope_recorder_starts", METRIC_COUNTER, NULL,
	                                     "How often the process that records was started" };
static const struct metric_family events = { "cuscope_recorder_events", METRIC_COUNTER, NULL,
	                                     "Events that it has seen" };
static const struct metric_family lost = { "cuscope_recorder_lost_events", METRIC_COUNTER, NULL,
	                                   "Events that it lost, or that are not whole" };
static const struct metric_family held_time = {
	"cuscope_recorder_held_seconds", METRIC_GAUGE, "seconds",
	"How far back all calls are held, but those of users with most of the memory: less than "
	"the setting where one of them is alone, and after a start"
};
static const struct metric_family short_time = {
	"cuscope_recorder_user_held_seconds", METRIC_GAUGE, "seconds",
	"How far back calls are held of a user with most of the memory, who gives way to others"
};
static const struct metric_family left_out = {
	"cuscope_recorder_left_out_events", METRIC_COUNTER, NULL,
	"Events of such users that are held no more, while older ones of others are"
};
static const struct metric_family held = { "cuscope_recorder_held_bytes", METRIC_GAUGE, "bytes",
	                                   "What it holds, packed" };
static const struct metric_family cpu = { "cuscope_recorder_cpu_seconds", METRIC_COUNTER, "seconds",
	                                  "Processor time that it took" };
static const struct metric_family overhead = {
	"cuscope_recorder_overhead_ratio", METRIC_GAUGE, "ratio",
	"What its probes cost the busiest thread, as a share of that thread's time"
};
static const struct metric_family seen = {
	"cuscope_recorder_recorded_ratio", METRIC_GAUGE, "ratio",
	"Share of the time in which calls are recorded: below 1 for max_overhead"
};
static const struct metric_family steps = { "cuscope_recorder_stepping_threads", METRIC_GAUGE, NULL,
	                                    "Threads whose steps it can judge" };
static const struct metric_family forgotten = {
	"cuscope_recorder_stepping_threads_left_out", METRIC_COUNTER, NULL,
	"Times that a thread's steps were forgotten for want of room"
};
static const struct metric_family written = { "cuscope_recordings", METRIC_COUNTER, NULL,
	                                      "Recordings in the spool, ever, by rule" };
static const struct metric_family failed = {
	"cuscope_recordings_failed", METRIC_COUNTER, NULL,
	"Recordings that came to nothing, by what was in the way"
};
static const struct metric_family held_back = {
	"cuscope_recordings_held_back", METRIC_COUNTER, NULL,
	"Rules that fired too soon after another recording, by the limit"
};
static const struct metric_family gpu_windows = {
	"cuscope_gpu_windows", METRIC_COUNTER, NULL,
	"Times that GPU times were to be measured after a rule fired, by what came of it"
};
static const struct metric_family no_room = {
	"cuscope_recorder_leaks_without_room", METRIC_GAUGE, NULL,
	"Places suspected to leak that the rule leak has no room to know"
};
static const struct metric_family spool_bytes = { "cuscope_spool_bytes", METRIC_GAUGE, "bytes",
	                                          "What recordings take on the disk" };
static const struct metric_family spool_files = { "cuscope_spool_files", METRIC_GAUGE, NULL,
	                                          "Recordings that are there" };

static void add_users(const struct recorder_state *state, struct metrics *metrics)
{
	struct buf who = { 0 };

	metrics_family(metrics, &short_time);
	for (uint32_t i = 0; i < state->n_short; i++) {
		buf_reset(&who);
		person_add(state->shorts[i].person, &who);
		metrics_add(metrics, metrics_labels(metrics, 0, "user", who.data, NULL),
		            state->shorts[i].held_ns, 9, 0);
	}
	buf_free(&who);
}

static void add_spool(const struct recorder_figures *figures, struct metrics *metrics)
{
	if (!figures->spool_known)
		return;
	metrics_one(metrics, &spool_bytes, figures->spool.bytes, 0, 0);
	metrics_one(metrics, &spool_files, figures->spool.files, 0, 0);
}

static void add_recordings(const struct recorder_figures *figures, uint64_t since,
                           struct metrics *metrics)
{
	metrics_family(metrics, &written);
	for (enum rule i = 0; i < RULE_COUNT; i++)
		metrics_add_of(metrics, "reason", rule_name(i), figures->written[i], since);
	metrics_family(metrics, &failed);
	for (int i = SPOOL_OK + 1; i < RECORDER_WHY_COUNT; i++)
		metrics_add_of(metrics, "why", recorder_why_name((enum recorder_why)i),
		               figures->failed[i], since);
	metrics_family(metrics, &held_back);
	for (int i = RULES_ALLOWED + 1; i < RULES_VERDICT_COUNT; i++)
		metrics_add_of(metrics, "limit", rules_verdict_name((enum rules_verdict)i),
		               figures->held_back[i], since);
	metrics_family(metrics, &gpu_windows);
	for (int i = 0; i < RECORDER_GPU_COUNT; i++)
		metrics_add_of(metrics, "outcome", recorder_gpu_name((enum recorder_gpu)i),
		               figures->gpu_windows[i], since);
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	struct recorder_figures figures;
	uint64_t since = view->started_ns;

	if (!recorder_holds(view->recorder))
		return;
	recorder_figures(view->recorder, &figures);
	metrics_one(metrics, &up, figures.up, 0, 0);
	metrics_one(metrics, &starts, figures.starts, 0, since);
	metrics_one(metrics, &events, figures.state.events, 0, since);
	metrics_one(metrics, &lost, figures.state.lost, 0, since);
	metrics_one(metrics, &held, figures.state.held_bytes, 0, 0);
	metrics_one(metrics, &held_time, figures.state.held_ns, 9, 0);
	metrics_one(metrics, &left_out, figures.state.left_out, 0, since);
	add_users(&figures.state, metrics);
	metrics_one(metrics, &cpu, figures.state.cpu_ns, 9, since);
	metrics_family(metrics, &overhead);
	metrics_add_real(metrics, 0, figures.state.overhead_percent / 100);
	metrics_family(metrics, &seen);
	metrics_add_real(metrics, 0,
	                 figures.state.scale > 1 ? 1 / figures.state.scale : figures.up);
	metrics_one(metrics, &steps, figures.state.steps_judged, 0, 0);
	metrics_one(metrics, &forgotten, figures.state.steps_forgotten, 0, since);
	metrics_one(metrics, &no_room, figures.leaks_no_room, 0, 0);
	add_recordings(&figures, since, metrics);
	add_spool(&figures, metrics);
}

const struct node_source source_recorder = { .name = "recorder", .fill = fill };
