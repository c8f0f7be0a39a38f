// SPDX-License-Identifier: MIT
/* --gpu-metrics, --no-gpu-metrics and --gpu-busy, and what `info` says of them. */
#include "cli/cli.h"

#include <errno.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/parse.h"

#define HZ      10 /* NVML is right at that, and costs next to nothing: docs/gpu.md */
#define MOST_HZ 20

/* By the hardware: between two samples. */
#define BUSY_LEAST_NS 20000ull
#define BUSY_MOST_NS  10000000ull

enum { OPT_METRICS = 4400, OPT_NO_METRICS, OPT_BUSY };

static const struct argp_option options[] = {
	{ "gpu-metrics", OPT_METRICS, "HZ", OPTION_ARG_OPTIONAL,
	  "how well GPUs are used, so often a second, 1 to 20 (default: 10): SM, tensor cores, "
	  "memory, links by NVML's GPM, or utilisation where a GPU has none",
	  6 },
	{ "gpu-busy", OPT_BUSY, "TIME", OPTION_ARG_OPTIONAL,
	  "when GPUs were busy, told from outside of programs by samples of their counters, so far "
	  "apart (default: 100us)",
	  6 },
	{ "no-gpu-metrics", OPT_NO_METRICS, 0, 0, "do not read them", 6 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cli_metrics *metrics = state->input;

	switch (key) {
	case OPT_METRICS:
		metrics->asked = true;
		metrics->off = false;
		metrics->hz = HZ;
		if (arg && (!parse_number(arg, MOST_HZ, &metrics->hz) || !metrics->hz))
			cli_bad_value(state, "--gpu-metrics", arg, "number from 1 to 20");
		return 0;
	case OPT_BUSY:
		metrics->busy_ns = arg ? cli_duration(state, "--gpu-busy", arg) : CLI_GPU_BUSY_NS;
		if (metrics->busy_ns < BUSY_LEAST_NS || metrics->busy_ns > BUSY_MOST_NS)
			cli_bad_value(state, "--gpu-busy", arg, "time from 20us to 10ms");
		return 0;
	case OPT_NO_METRICS:
		metrics->off = true;
		metrics->asked = false;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cli_metrics_argp = { .options = options, .parser = parse };

/* Who samples counters uses CUDA, too: it would be a target itself. */
int cli_metrics_check(const struct cli_metrics *metrics, const struct target *target,
                      struct err *err)
{
	if (metrics->busy_ns && target->kind == TARGET_ALL)
		return err_set(err, EINVAL,
		               "--gpu-busy goes without --all: name processes with -p, --name or "
		               "--cgroup");
	return 0;
}

void cli_metrics_settle(const struct cli_metrics *metrics, bool by_default,
                        struct capture_options *capture)
{
	uint64_t hz = metrics->hz ? metrics->hz : HZ;

	capture->metrics_asked = metrics->asked;
	capture->stretches_ns = metrics->busy_ns;
	capture->metrics_ns = metrics->asked || (by_default && !metrics->off) ? 1000000000 / hz : 0;
}

/* ---- info ---------------------------------------------------------------------------------- */

/* "busy time of GPUs by 99123 samples 100 us apart; took 8.20 % of a CPU" */
static void info_add_stretches(struct buf *out, const struct run_info *run)
{
	const struct run_stretches *of = &run->stretches;
	double span_ns = (double)(run->end_ns - run->begin_ns);

	if (!of->interval_ns)
		return;
	buf_printf(out, "busy time of GPUs by %llu samples, ", (unsigned long long)of->samples);
	buf_duration(out, of->interval_ns);
	buf_puts(out, " apart");
	if (of->lost)
		buf_printf(out, ", some lost %llu time%s", (unsigned long long)of->lost,
		           of->lost == 1 ? "" : "s");
	if (of->dropped)
		buf_printf(out, ", %llu stretches without room", (unsigned long long)of->dropped);
	if (span_ns > 0)
		buf_printf(out, "; took %.2f %% of a CPU", 100 * (double)of->cpu_ns / span_ns);
	buf_putc(out, '\n');
}

/* "10 a second, 296 by GPM, 2 moments missed; took 0.04 % of a CPU" */
void info_add_metrics(struct buf *out, const struct run_info *run)
{
	const struct run_metrics *metrics = &run->metrics;
	double span_ns = (double)(run->end_ns - run->begin_ns);

	info_add_stretches(out, run);
	if (!metrics->interval_ns)
		return;
	buf_printf(out, "GPU metrics %.0f a second", 1e9 / (double)metrics->interval_ns);
	if (metrics->gpm)
		buf_printf(out, ", %llu samples by GPM", (unsigned long long)metrics->gpm);
	if (metrics->utilization)
		buf_printf(out, ", %llu samples by NVML's utilisation, for want of GPM",
		           (unsigned long long)metrics->utilization);
	if (metrics->late)
		buf_printf(out, ", %llu moment%s missed", (unsigned long long)metrics->late,
		           metrics->late == 1 ? "" : "s");
	if (metrics->none)
		buf_printf(out, ", %llu readings without one", (unsigned long long)metrics->none);
	if (metrics->dropped)
		buf_printf(out, ", %llu without room", (unsigned long long)metrics->dropped);
	if (span_ns > 0)
		buf_printf(out, "; took %.2f %% of a CPU", 100 * (double)metrics->cpu_ns / span_ns);
	buf_putc(out, '\n');
}

static void info_json_stretches(struct json *json, const struct run_stretches *stretches)
{
	if (!stretches->interval_ns)
		return;
	json_open(json, "gpu_busy", '{');
	json_u64(json, "interval_ns", stretches->interval_ns);
	json_u64(json, "clock_error_ns", stretches->clock_error_ns);
	json_u64(json, "samples", stretches->samples);
	json_u64(json, "losses", stretches->lost);
	json_u64(json, "dropped_stretches", stretches->dropped);
	json_u64(json, "cpu_ns", stretches->cpu_ns);
	json_close(json, '}');
}

void info_json_metrics(struct json *json, const struct run_info *run)
{
	const struct run_metrics *metrics = &run->metrics;

	info_json_stretches(json, &run->stretches);
	if (!metrics->interval_ns)
		return;
	json_open(json, "gpu_metrics", '{');
	json_u64(json, "interval_ns", metrics->interval_ns);
	json_u64(json, "gpm_samples", metrics->gpm);
	json_u64(json, "utilization_samples", metrics->utilization);
	json_u64(json, "missed_moments", metrics->late);
	json_u64(json, "failed_readings", metrics->none);
	json_u64(json, "dropped_samples", metrics->dropped);
	json_u64(json, "cpu_ns", metrics->cpu_ns);
	json_close(json, '}');
}
