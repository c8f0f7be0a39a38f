// SPDX-License-Identifier: MIT
#include "gpus/nvml_check.h"

#include <string.h>

#include "base/array.h"

#define BYTES_MOST   (1ll << 60)
#define SECONDS_MOST 1000000000000000000ull /* 30 years, in nanoseconds */

/* Of bytes: a bool that is neither 0 nor 1 must not be read as one. */
static bool is_bool(const bool *value)
{
	unsigned char byte;

	memcpy(&byte, value, sizeof(byte));
	return byte <= 1;
}

static bool check_text(char *text, size_t size)
{
	if (!memchr(text, '\0', size))
		return false;
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 127)
			*text = '?';
	}
	return true;
}

#define TEXT(array) check_text(array, sizeof(array))

static bool between(int64_t number, int64_t least, int64_t most)
{
	return number >= least && number <= most;
}

/* A number that no GPU can tell is not known. */
static void bound(int64_t *number, int64_t most)
{
	if (!between(*number, 0, most))
		*number = GPU_UNKNOWN;
}

static void bound_int(int *number, int most)
{
	if (!between(*number, 0, most))
		*number = GPU_UNKNOWN;
}

static bool check_beat(struct nvml_beat *beat, uint64_t now_ns)
{
	for (size_t i = 0; i < GPUS_MAX; i++) {
		if (beat->since_ns[i] > now_ns)
			return false;
	}
	return beat->n <= GPUS_MAX && beat->cpu_ns < SECONDS_MOST &&
	       beat->resident_bytes < BYTES_MOST && TEXT(beat->why) && TEXT(beat->driver);
}

/* ---- metrics ------------------------------------------------------------------------------- */

static bool check_metrics(struct gpu_metrics_sample *sample, uint32_t index, uint64_t now_ns)
{
	if (sample->gpu != index || (uint32_t)sample->source >= GPU_METRICS_SOURCES ||
	    sample->begin_ns > sample->end_ns || sample->end_ns > now_ns)
		return false;
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		bool rate = gpu_metric_info(i)->is_rate;

		bound(&sample->value[i], rate ? GPU_RATE_MOST : GPU_SHARE_WHOLE);
	}
	return true;
}

static bool check_sample(struct nvml_sample *sample, uint64_t now_ns)
{
	return sample->index < GPUS_MAX && sample->source < GPU_METRICS_SOURCES &&
	       sample->late < UINT32_MAX && sample->cpu_ns < SECONDS_MOST &&
	       sample->reading_ns < SECONDS_MOST && sample->any <= 1 &&
	       sample->graphics_ns <= now_ns &&
	       (!sample->any || check_metrics(&sample->sample, sample->index, now_ns));
}

/* One after the other, each with a length; shares that cannot be are not known. */
static bool check_stretches(struct nvml_stretches *stretches, uint64_t now_ns)
{
	uint64_t end_ns = 0;

	if (stretches->index >= GPUS_MAX || stretches->n > NVML_STRETCHES ||
	    stretches->interval_ns >= SECONDS_MOST || stretches->clock_error_ns >= SECONDS_MOST ||
	    stretches->samples >= UINT32_MAX || stretches->lost >= UINT32_MAX ||
	    stretches->cpu_ns >= SECONDS_MOST)
		return false;
	for (uint32_t i = 0; i < stretches->n; i++) {
		struct gpu_stretch *of = &stretches->of[i];
		int16_t *shares[] = { &of->sm, &of->tensor, &of->dram };

		if (of->begin_ns < end_ns || of->end_ns <= of->begin_ns || of->end_ns > now_ns ||
		    !between(of->busy, 0, GPU_SHARE_WHOLE) ||
		    !between(of->copies, 0, GPU_SHARE_WHOLE))
			return false;
		end_ns = of->end_ns;
		for (size_t k = 0; k < ARRAY_SIZE(shares); k++) {
			if (!between(*shares[k], 0, GPU_SHARE_WHOLE))
				*shares[k] = GPU_METRIC_UNKNOWN;
		}
	}
	return true;
}

/* ---- what a machine has -------------------------------------------------------------------- */

static bool check_gpu(struct gpu *gpu)
{
	int *shares[] = { &gpu->busy_percent, &gpu->sm_percent, &gpu->tensor_percent,
		          &gpu->dram_percent };
	int *small[] = { &gpu->temperature_c, &gpu->compute_major, &gpu->compute_minor,
		         &gpu->multiprocessors };
	int64_t *large[] = { &gpu->power_mw,          &gpu->power_limit_mw,
		             &gpu->memory_used_bytes, &gpu->memory_total_bytes,
		             &gpu->clock_hz,          &gpu->memory_bandwidth };

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		bound_int(shares[i], 100);
	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		bound_int(small[i], 1000000);
	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		bound(large[i], BYTES_MOST);
	return TEXT(gpu->name) && TEXT(gpu->uuid) && TEXT(gpu->bus);
}

static bool check_gpus(struct gpus_sample *sample)
{
	if (sample->n > GPUS_MAX || sample->n_processes > GPU_PROCESSES_MAX || !TEXT(sample->why))
		return false;
	for (size_t i = 0; i < sample->n; i++) {
		if (!check_gpu(&sample->gpus[i]))
			return false;
	}
	for (size_t i = 0; i < sample->n_processes; i++) {
		if (sample->processes[i].bytes > (uint64_t)BYTES_MOST)
			return false;
	}
	return true;
}

/* ---- all that a GPU tells ------------------------------------------------------------------ */

static void bound_values(struct gpu_state *state)
{
	for (enum gpu_value i = 0; i < GPU_VALUES; i++)
		bound(&state->value[i], INT64_MAX);
	bound(&state->value[GPU_VALUE_BUSY_PERCENT], 100);
	bound(&state->value[GPU_VALUE_MEMORY_BUSY_PERCENT], 100);
}

/* Where there are none, what stands there is nothing. */
static bool check_last_metrics(struct gpu_state *state, uint64_t now_ns)
{
	struct gpu_state unknown;

	if ((uint32_t)state->metrics.source != GPU_METRICS_NONE)
		return check_metrics(&state->metrics, state->index, now_ns);
	gpu_state_unknown(&unknown, state->index);
	state->metrics = unknown.metrics;
	return true;
}

static bool check_xids(const struct gpu_xids *xids)
{
	uint64_t sum = 0;

	if (xids->n_codes > GPU_STATE_XIDS_MAX || xids->total >= UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < xids->n_codes; i++) {
		if (xids->codes[i].count > xids->total)
			return false;
		sum += xids->codes[i].count;
	}
	return sum == xids->total;
}

static bool check_mig(struct gpu_mig *mig)
{
	bound(&mig->memory_used_bytes, BYTES_MOST);
	bound(&mig->memory_total_bytes, BYTES_MOST);
	return TEXT(mig->uuid) && TEXT(mig->name);
}

static bool check_lists(struct gpu_state *state)
{
	if (state->n_mig > GPU_STATE_MIG_MAX || state->n_processes > GPU_STATE_PROCESSES_MAX)
		return false;
	for (uint32_t i = 0; i < state->n_mig; i++) {
		if (!check_mig(&state->mig[i]))
			return false;
	}
	for (uint32_t i = 0; i < state->n_processes; i++) {
		struct gpu_state_process *process = &state->processes[i];

		bound(&process->bytes, BYTES_MOST);
		if (!between(process->mig, -1, (int64_t)state->n_mig - 1))
			return false;
	}
	return true;
}

static bool check_state(struct gpu_state *state, uint64_t now_ns)
{
	if (state->index >= GPUS_MAX || (uint32_t)state->answer > GPU_ANSWER_FAILED ||
	    state->read_ns > now_ns || state->xids.last_ns > now_ns || state->reads >= UINT32_MAX ||
	    state->failures >= UINT32_MAX)
		return false;
	bound_values(state);
	return is_bool(&state->xids_told) && is_bool(&state->mig_mode) &&
	       is_bool(&state->processes_told) && TEXT(state->model) && TEXT(state->uuid) &&
	       TEXT(state->bus) && TEXT(state->why) && check_xids(&state->xids) &&
	       check_lists(state) && check_last_metrics(state, now_ns);
}

bool nvml_check(struct nvml_message *message, size_t bytes, enum nvml_wanted wanted,
                uint64_t now_ns)
{
	if (bytes < sizeof(message->head) || message->head.magic != NVML_WIRE_MAGIC ||
	    bytes != nvml_message_bytes(message->head.kind))
		return false;
	switch (message->head.kind) {
	case NVML_MESSAGE_BEAT:
		return check_beat(&message->beat, now_ns);
	case NVML_MESSAGE_GPUS:
		return wanted == NVML_WANTED_GPUS && check_gpus(&message->gpus);
	case NVML_MESSAGE_STATE:
		return wanted == NVML_WANTED_STATES && check_state(&message->state, now_ns);
	case NVML_MESSAGE_SAMPLE:
		return wanted == NVML_WANTED_SAMPLES && check_sample(&message->sample, now_ns);
	case NVML_MESSAGE_STRETCHES:
		return wanted == NVML_WANTED_STRETCHES &&
		       check_stretches(&message->stretches, now_ns);
	default:
		return false;
	}
}
