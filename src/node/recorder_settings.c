// SPDX-License-Identifier: MIT
/* The sections of the configuration that are the flight recorder's. */
#include "node/recorder_settings.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/parse.h"
#include "node/error_patterns.h"

#define SECOND    1000000000ull
#define MIB       (1ull << 20)
#define TIB       (1ull << 40)
#define AT(field) offsetof(struct node_settings, recorder.field)

static const char *const full_words[] = { "oldest", "refuse", NULL };

/* A process has to start for it, and CUPTI in each that is measured. */
static const char *wrong_window(const char *value)
{
	uint64_t ns;

	return parse_duration_ns(value, &ns) && ns && ns < SECOND ? "is too short" : NULL;
}

static const struct config_row recorder_rows[] = {
	{ "enabled", CONFIG_FLAG, AT(enabled), "no", 0, 0, NULL,
	  "yes: every call is recorded, and the last seconds are held in memory", NULL },
	{ "last", CONFIG_DURATION, AT(last_ns), "30s", SECOND, 600 * SECOND, NULL,
	  "how much is held, from 1s to 10m", NULL },
	{ "memory", CONFIG_BYTES, AT(memory_bytes), "64MiB", MIB, 4096 * MIB, NULL,
	  "how large that may be, from 1MiB to 4GiB; less time is held then", NULL },
	{ "after", CONFIG_DURATION, AT(after_ns), "500ms", 0, 60 * SECOND, NULL,
	  "how long it goes on after a rule fired, up to 60s", NULL },
	{ "max_overhead", CONFIG_NUMBER, AT(max_overhead), "0", 0, 100, NULL,
	  "percent that recording may cost the busiest thread, from 1 to 100: results are given up "
	  "for it, and errors not seen then; 0: getters alone are",
	  NULL },
	{ "gpu_window", CONFIG_DURATION, AT(gpu_window_ns), "0", 0, 60 * SECOND, NULL,
	  "how long GPU times are measured after a rule fired, from 1s to 60s; 0: not at all",
	  wrong_window },
};

static const struct config_row spool_rows[] = {
	{ "directory", CONFIG_TEXT, AT(directory), "/var/lib/cuscope/spool", 0, 4000, NULL,
	  "the folder of recordings, which nobody else may write to", NULL },
	{ "bytes", CONFIG_BYTES, AT(spool_bytes), "1GiB", MIB, 1024 * TIB, NULL,
	  "how large all recordings may be, from 1MiB", NULL },
	{ "files", CONFIG_NUMBER, AT(spool_files), "100", 1, 10000, NULL,
	  "how many recordings there may be, from 1 to 10000", NULL },
	{ "when_full", CONFIG_WORD, AT(spool_refuse), "oldest", 0, 0, full_words,
	  "oldest: those go first; refuse: they stay, and no new ones are written", NULL },
	{ "keep_free", CONFIG_BYTES, AT(keep_free_bytes), "1GiB", 0, 1024 * TIB, NULL,
	  "what is to stay free of the disk", NULL },
};

static const char *wrong_errors(const char *value)
{
	struct error_patterns patterns;

	return error_patterns_parse(&patterns, value, NULL)
	               ? "is no list of fatal and FUNCTION:CODE (cudaMalloc*:2, *:719)"
	               : NULL;
}

static const struct config_row rules_rows[] = {
	{ "xid", CONFIG_FLAG, AT(xid), "yes", 0, 0, NULL, "yes: an Xid of a GPU", NULL },
	{ "error", CONFIG_TEXT, AT(errors), "fatal", 0, RULES_ERRORS_MAX - 1, NULL,
	  "failed calls: fatal, or FUNCTION:CODE with commas; nothing: none", wrong_errors },
	{ "memory", CONFIG_NUMBER, AT(memory_percent), "0", 0, 100, NULL,
	  "percent of a GPU's memory in use, from 1 to 100; 0: never", NULL },
	{ "idle", CONFIG_DURATION, AT(idle_ns), "0", 0, 86400 * SECOND, NULL,
	  "how long a GPU has nothing to do while a process has a context, up to 24h; 0: never",
	  NULL },
	{ "slow_step", CONFIG_NUMBER, AT(slow_step), "0", 0, 1000, NULL,
	  "how many times its median a step takes, up to 1000; 0: never", NULL },
	{ "step_least", CONFIG_DURATION, AT(step_least_ns), "10ms", 0, 3600 * SECOND, NULL,
	  "steps whose median is shorter are not judged, up to 1h", NULL },
	{ "step_range", CONFIG_TEXT, AT(step_range), "", 0, RULES_RANGE_MAX - 1, NULL,
	  "the NVTX range that is a step, a glob; nothing: steps are found in the launches", NULL },
	{ "leak", CONFIG_FLAG, AT(leak), "yes", 0, 0, NULL, "yes: a place is suspected to leak",
	  NULL },
	{ "request", CONFIG_FLAG, AT(request), "yes", 0, 0, NULL,
	  "yes: POST /record, which wants the token of [tls]", NULL },
	{ "cool_down", CONFIG_DURATION, AT(cool_down_ns), "5m", 0, 86400 * SECOND, NULL,
	  "between two recordings of a rule, up to 24h", NULL },
	{ "per_hour", CONFIG_NUMBER, AT(per_hour), "12", 0, 1000, NULL,
	  "recordings of all rules but requests in an hour, up to 1000", NULL },
};

const struct config_table config_recorder = { "recorder", recorder_rows,
	                                      ARRAY_SIZE(recorder_rows) };
const struct config_table config_spool = { "spool", spool_rows, ARRAY_SIZE(spool_rows) };
const struct config_table config_rules = { "rules", rules_rows, ARRAY_SIZE(rules_rows) };

void recorder_settings_make(struct recorder_settings *settings, const struct node_settings *node)
{
	const struct node_recorder *from = &node->recorder;
	struct rules_settings *rules = &settings->rules;

	memset(settings, 0, sizeof(*settings));
	settings->enabled = from->enabled;
	settings->last_ns = from->last_ns;
	settings->memory_bytes = from->memory_bytes;
	settings->after_ns = from->after_ns;
	settings->max_overhead = (double)from->max_overhead;
	settings->gpu_window_ns = from->gpu_window_ns;
	settings->spool.bytes = from->spool_bytes;
	settings->spool.files = from->spool_files;
	settings->spool.refuse = from->spool_refuse;
	settings->spool.keep_free_bytes = from->keep_free_bytes;
	rules->xid = from->xid;
	rules->leak = from->leak;
	rules->request = from->request;
	snprintf(rules->errors, sizeof(rules->errors), "%s", from->errors);
	snprintf(rules->step_range, sizeof(rules->step_range), "%s", from->step_range);
	rules->memory_percent = (double)from->memory_percent;
	rules->idle_ns = from->idle_ns;
	rules->slow_step = (double)from->slow_step;
	rules->step_least_ns = from->step_least_ns;
	rules->cool_down_ns = from->cool_down_ns;
	rules->per_hour = from->per_hour;
}
