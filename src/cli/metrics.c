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

static bool metrics_take_hz(const struct argp_state *state, void *to, const char *value)
{
	struct cli_metrics *metrics = to;

	metrics->asked = true;
	metrics->off = false;
	metrics->hz = HZ;
	return !value || (parse_number(value, MOST_HZ, &metrics->hz) && metrics->hz);
}

static bool metrics_take_busy(const struct argp_state *state, void *to, const char *value)
{
	uint64_t *ns = to;

	*ns = CLI_GPU_BUSY_NS;
	return !value ||
	       (parse_duration_ns(value, ns) && *ns >= BUSY_LEAST_NS && *ns <= BUSY_MOST_NS);
}

static bool metrics_take_none(const struct argp_state *state, void *to, const char *value)
{
	struct cli_metrics *metrics = to;

	metrics->off = true;
	metrics->asked = false;
	return true;
}

static const struct option_row rows[] = {
	{ "gpu-metrics", 0, "HZ",
	  "how well GPUs are used, so often a second, 1 to 20 (default: 10): SM, tensor cores, "
	  "memory, links by NVML's GPM, or utilisation where a GPU has none",
	  OPTION_TAKE, .take = metrics_take_hz, .is_no = "number from 1 to 20", .optional = true,
	  .order = 6 },
	{ "gpu-busy", 0, "TIME",
	  "when GPUs were busy, told from outside of programs by samples of their counters, so far "
	  "apart (default: 750us)",
	  OPTION_TAKE, offsetof(struct cli_metrics, busy_ns), .take = metrics_take_busy,
	  .is_no = "time from 20us to 10ms", .optional = true },
	{ "no-gpu-metrics", 0, NULL, "do not read them", OPTION_TAKE, .take = metrics_take_none },
};

const struct option_group cli_metrics_options = { OPTION_ROWS(rows) };

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
	buf_printf(out, "busy time of GPUs by %lu samples, ", of->samples);
	buf_duration(out, of->interval_ns);
	buf_puts(out, " apart");
	if (of->lost)
		buf_printf(out, ", some lost %lu time%s", of->lost, of->lost == 1 ? "" : "s");
	if (of->dropped)
		buf_printf(out, ", %lu stretches without room", of->dropped);
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
		buf_printf(out, ", %lu samples by GPM", metrics->gpm);
	if (metrics->utilization)
		buf_printf(out, ", %lu samples by NVML's utilisation, for want of GPM",
		           metrics->utilization);
	if (metrics->late)
		buf_printf(out, ", %lu moment%s missed", metrics->late,
		           metrics->late == 1 ? "" : "s");
	if (metrics->none)
		buf_printf(out, ", %lu readings without one", metrics->none);
	if (metrics->dropped)
		buf_printf(out, ", %lu without room", metrics->dropped);
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
