// SPDX-License-Identifier: MIT
#include "trace/run_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "trace/define.h"
#include "trace/objects.h"
#include "trace/run_identity.h"

#define SCALE_MAX 1e6 /* a window is at least 50 ms; what is larger is damage */

/* ---- writing ------------------------------------------------------------------------------- */

static void add_numbers(struct buf *raw, enum run_field field, uint64_t one, const uint64_t *two)
{
	struct buf body = { 0 };

	record_varint(&body, one);
	if (two)
		record_varint(&body, *two);
	record_add(raw, field, &body);
	buf_free(&body);
}

static void add_text(struct buf *raw, enum run_field field, const char *text)
{
	struct buf body = { 0 };

	if (!text)
		return;
	record_text(&body, text);
	record_add(raw, field, &body);
	buf_free(&body);
}

static void add_optional_text(struct buf *body, const char *text)
{
	record_varint(body, text != NULL);
	record_text(body, text);
}

/* A path may be 4 KiB long, and there may be any number of them: what is written has a bound. */
#define MISS_TEXT_MAX  1024
#define MISS_BYTES_MAX (2u << 20)
_Static_assert(MISS_BYTES_MAX + 4 * MISS_TEXT_MAX + 8 * FORMAT_TEXT_MAX < FORMAT_RAW_MAX,
               "the run fits in a chunk, whatever was missed");

static void add_miss_text(struct buf *body, const char *text)
{
	char cut[MISS_TEXT_MAX];

	if (text && strnlen(text, sizeof(cut)) == sizeof(cut)) {
		snprintf(cut, sizeof(cut), "%.*s...", (int)sizeof(cut) - 4, text);
		text = cut;
	}
	add_optional_text(body, text);
}

static void add_miss(struct buf *raw, const struct miss *miss)
{
	struct buf body = { 0 };

	record_varint(&body, miss->kind);
	record_varint(&body, miss->pid);
	add_miss_text(&body, miss->name);
	add_miss_text(&body, miss->lib);
	add_miss_text(&body, miss->why);
	record_varint(&body, miss->processes);
	if (miss->calls)
		record_varint(&body, miss->calls);
	record_add(raw, RUN_MISS, &body);
	buf_free(&body);
}

static void add_misses(struct buf *raw, const struct run_info *run)
{
	struct miss rest = { 0 };
	size_t begin = raw->len, i = 0;
	char why[80];

	for (; i < run->n_misses && raw->len - begin < MISS_BYTES_MAX; i++)
		add_miss(raw, &run->misses[i]);
	if (i == run->n_misses)
		return;
	snprintf(why, sizeof(why), "%zu more such things were missed and are not listed",
	         run->n_misses - i);
	rest.kind = run->misses[i].kind;
	rest.why = why;
	add_miss(raw, &rest);
}

static void add_scale(struct buf *raw, double scale)
{
	struct buf body = { 0 };
	uint8_t bytes[8];
	uint64_t bits;

	memcpy(&bits, &scale, sizeof(bits));
	put_fixed(bytes, bits, sizeof(bytes));
	buf_add(&body, bytes, sizeof(bytes));
	record_add(raw, RUN_SCALE, &body);
	buf_free(&body);
}

static void add_machine(struct buf *raw, const struct run_info *run)
{
	struct buf body = { 0 };

	if (!run->machine)
		return;
	record_text(&body, run->machine);
	record_varint(&body, run->cpus);
	record_varint(&body, run->memory_bytes);
	record_add(raw, RUN_MACHINE, &body);
	buf_free(&body);
}

static void add_device(struct buf *raw, const struct run_gpu *gpu)
{
	const uint64_t numbers[] = { gpu->memory_bytes, gpu->clock_hz, gpu->memory_bandwidth,
		                     gpu->major,        gpu->minor,    gpu->multiprocessors };
	struct buf body = { 0 };

	record_text(&body, gpu->name);
	record_text(&body, gpu->uuid);
	record_text(&body, gpu->bus);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		record_varint(&body, numbers[i]);
	record_add(raw, RUN_DEVICE, &body);
	buf_free(&body);
}

static void add_overhead(struct buf *raw, const struct run_info *run)
{
	uint64_t most = (uint64_t)(100 * run->overhead_most_percent + 0.5);

	add_numbers(raw, RUN_OVERHEAD, (uint64_t)(100 * run->overhead_percent + 0.5), &most);
}

/*
 * 1 alone is what files say that know of launches and copies only. Others have the calls above it,
 * and 1 as well where launches or copies are among them, for their readers.
 */
static uint64_t calls_word(uint32_t calls)
{
	return (uint64_t)calls << 1 | !!(calls & STACK_CALLS_WORK);
}

static uint32_t calls_of_word(uint64_t word)
{
	return word == 1 ? STACK_CALLS_WORK : (uint32_t)(word >> 1) & STACK_CALLS_ALL;
}

static void add_stacks(struct buf *raw, const struct run_stacks *stacks)
{
	struct buf body = { 0 };

	if (stacks->blocked)
		add_numbers(raw, RUN_BLOCKED, stacks->blocked_ns, NULL);
	if (stacks->host_waits)
		add_numbers(raw, RUN_HOST_WAITS, stacks->blocked_ns, NULL);
	if (!stacks->sample_ns && !stacks->calls && !stacks->blocked)
		return;
	record_varint(&body, stacks->sample_ns);
	record_varint(&body, calls_word(stacks->calls));
	record_varint(&body, stacks->one_in);
	record_varint(&body, stacks->call_ns);
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++)
		record_varint(&body, stacks->missed[i]);
	record_add(raw, RUN_STACKS, &body);
	buf_free(&body);
}

static void add_metrics(struct buf *raw, const struct run_metrics *metrics)
{
	const uint64_t numbers[] = { metrics->interval_ns, metrics->gpm,  metrics->utilization,
		                     metrics->late,        metrics->none, metrics->dropped,
		                     metrics->cpu_ns };
	struct buf body = { 0 };

	if (!metrics->interval_ns)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		record_varint(&body, numbers[i]);
	record_add(raw, RUN_METRICS, &body);
	buf_free(&body);
}

static void add_stretches(struct buf *raw, const struct run_stretches *stretches)
{
	const uint64_t numbers[] = { stretches->interval_ns, stretches->clock_error_ns,
		                     stretches->samples,     stretches->lost,
		                     stretches->dropped,     stretches->cpu_ns };
	struct buf body = { 0 };

	if (!stretches->interval_ns)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		record_varint(&body, numbers[i]);
	record_add(raw, RUN_STRETCHES, &body);
	buf_free(&body);
}

void run_write(const struct run_info *run, struct buf *raw)
{
	buf_reset(raw);
	add_text(raw, RUN_WRITER, "cuscope " CUSCOPE_VERSION);
	add_numbers(raw, RUN_BEGIN, run->begin_ns, NULL);
	add_numbers(raw, RUN_END, run->end_ns, NULL);
	add_numbers(raw, RUN_REALTIME_OFFSET, fold((uint64_t)run->realtime_offset_ns), NULL);
	add_numbers(raw, RUN_BOOTTIME_OFFSET, fold((uint64_t)run->boottime_offset_ns), NULL);
	for (uint64_t i = 0; i < LOST_COUNT; i++) {
		if (run->lost[i])
			add_numbers(raw, RUN_LOST, i, &run->lost[i]);
	}
	add_misses(raw, run);
	add_scale(raw, run->estimate_scale);
	add_numbers(raw, RUN_RETURNS, run->returns, NULL);
	add_numbers(raw, RUN_HOLDS, run->holds, &run->longest_hold_ns);
	if (run->overhead_most_percent > 0)
		add_overhead(raw, run);
	add_text(raw, RUN_HOSTNAME, run->hostname);
	add_text(raw, RUN_BOOT, run->boot);
	add_text(raw, RUN_KERNEL_RELEASE, run->kernel_release);
	add_text(raw, RUN_DRIVER_VERSION, run->driver_version);
	add_text(raw, RUN_COMMAND, run->command);
	add_text(raw, RUN_CHOSEN, run->chosen);
	add_text(raw, RUN_REASON, run->reason);
	if (run->gpu_times)
		add_numbers(raw, RUN_GPU, true, &run->gpu_clock_error_ns);
	add_machine(raw, run);
	add_metrics(raw, &run->metrics);
	add_stretches(raw, &run->stretches);
	for (size_t i = 0; i < run->n_gpus; i++)
		add_device(raw, &run->gpus[i]);
	add_stacks(raw, &run->stacks);
	run_identities_add(raw, run);
}

/* ---- reading ------------------------------------------------------------------------------- */

void run_free(struct kept_run *run)
{
	struct miss *misses = (struct miss *)run->info.misses;

	for (size_t i = 0; i < run->info.n_misses; i++) {
		free((char *)misses[i].name);
		free((char *)misses[i].lib);
		free((char *)misses[i].why);
	}
	free(misses);
	free((char *)run->info.hostname);
	free((char *)run->info.boot);
	free((char *)run->info.kernel_release);
	free((char *)run->info.driver_version);
	free((char *)run->info.command);
	free((char *)run->info.chosen);
	free((char *)run->info.reason);
	free((char *)run->info.machine);
	free((struct run_gpu *)run->info.gpus);
	run_identities_free(&run->info);
	free(run->writer);
	memset(run, 0, sizeof(*run));
}

/* A reason that this program does not know is shown as the commonest. */
static void read_lost(struct run_info *run, struct bytes *body)
{
	uint64_t reason = bytes_varint(body), count = bytes_varint(body);

	run->lost[reason < LOST_COUNT ? reason : LOST_RING_FULL] += count;
}

static char *read_optional_text(struct bytes *body)
{
	bool there = bytes_varint(body) != 0;
	char *text = record_string(body);

	if (there)
		return text;
	free(text);
	return NULL;
}

static void read_miss(struct kept_run *kept, struct bytes *body)
{
	struct run_info *run = &kept->info;
	struct miss *misses = (struct miss *)run->misses, *miss;
	uint64_t kind = bytes_varint(body);

	if (run->n_misses == RUN_MISSES_MAX) {
		kept->over_budget++;
		return;
	}
	if ((run->n_misses & (run->n_misses - 1)) == 0)
		misses =
			xrealloc(misses, (run->n_misses ? 2 * run->n_misses : 1) * sizeof(*misses));
	run->misses = misses;
	miss = &misses[run->n_misses++];
	miss->kind = kind <= MISS_LAST ? (enum miss_kind)kind : MISS_NOT_HOOKED;
	miss->pid = (uint32_t)bytes_varint(body);
	miss->name = read_optional_text(body);
	miss->lib = read_optional_text(body);
	miss->why = read_optional_text(body);
	/* not there in older files */
	miss->processes = body->at < body->end ? bytes_varint(body) : 0;
	miss->calls = body->at < body->end ? bytes_varint(body) : 0;
}

static void read_scale(struct run_info *run, struct bytes *body)
{
	struct bytes bits = bytes_take(body, 8);
	uint64_t value;

	if (bits.bad)
		return;
	value = get_fixed(bits.at, 8);
	memcpy(&run->estimate_scale, &value, sizeof(value));
	if (!(run->estimate_scale >= 1 && run->estimate_scale <= SCALE_MAX)) /* not NaN either */
		run->estimate_scale = 1;
}

static void read_text(const char **text, struct bytes *body)
{
	free((char *)*text);
	*text = record_string(body);
}

static void read_machine(struct run_info *run, struct bytes *body)
{
	read_text(&run->machine, body);
	run->cpus = (uint32_t)bytes_varint(body);
	run->memory_bytes = bytes_varint(body);
}

static void read_into(char *text, size_t size, struct bytes *body)
{
	char *all = record_string(body);

	snprintf(text, size, "%s", all);
	free(all);
}

/* What is beyond the most is left out, as a damaged file's ten thousandth GPU is no loss. */
static void read_device(struct run_info *run, struct bytes *body)
{
	struct run_gpu *gpus = (struct run_gpu *)run->gpus, *gpu;

	if (run->n_gpus == RUN_GPUS_MAX)
		return;
	if (!gpus)
		run->gpus = gpus = xcalloc(RUN_GPUS_MAX, sizeof(*gpus));
	gpu = &gpus[run->n_gpus++];
	read_into(gpu->name, sizeof(gpu->name), body);
	read_into(gpu->uuid, sizeof(gpu->uuid), body);
	read_into(gpu->bus, sizeof(gpu->bus), body);
	gpu->memory_bytes = bytes_varint(body);
	gpu->clock_hz = bytes_varint(body);
	gpu->memory_bandwidth = bytes_varint(body);
	gpu->major = (uint32_t)bytes_varint(body);
	gpu->minor = (uint32_t)bytes_varint(body);
	gpu->multiprocessors = (uint32_t)bytes_varint(body);
}

/* Tracing costs at most nine times a thread's own time: governor.c knows it no better. */
static double read_percent(struct bytes *body)
{
	uint64_t hundredths = bytes_varint(body);

	return (hundredths < 100000 ? (double)hundredths : 100000) / 100;
}

static void read_stacks(struct run_stacks *stacks, struct bytes *body)
{
	stacks->sample_ns = bytes_varint(body);
	stacks->calls = calls_of_word(bytes_varint(body));
	stacks->one_in = (uint32_t)bytes_varint(body);
	stacks->call_ns = bytes_varint(body);
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++)
		stacks->missed[i] = body->at < body->end ? bytes_varint(body) : 0;
}

static void read_stretches(struct run_stretches *stretches, struct bytes *body)
{
	stretches->interval_ns = bytes_varint(body);
	stretches->clock_error_ns = bytes_varint(body);
	stretches->samples = bytes_varint(body);
	stretches->lost = bytes_varint(body);
	stretches->dropped = bytes_varint(body);
	stretches->cpu_ns = bytes_varint(body);
}

static void read_metrics(struct run_metrics *metrics, struct bytes *body)
{
	metrics->interval_ns = bytes_varint(body);
	metrics->gpm = bytes_varint(body);
	metrics->utilization = bytes_varint(body);
	metrics->late = bytes_varint(body);
	metrics->none = bytes_varint(body);
	metrics->dropped = bytes_varint(body);
	metrics->cpu_ns = bytes_varint(body);
}

static void read_field(struct kept_run *kept, uint64_t field, struct bytes *body)
{
	struct run_info *run = &kept->info;

	switch (field) {
	case RUN_BEGIN:
		run->begin_ns = bytes_varint(body);
		break;
	case RUN_END:
		run->end_ns = bytes_varint(body);
		break;
	case RUN_REALTIME_OFFSET:
		run->realtime_offset_ns = (int64_t)unfold(bytes_varint(body));
		break;
	case RUN_BOOTTIME_OFFSET:
		run->boottime_offset_ns = (int64_t)unfold(bytes_varint(body));
		break;
	case RUN_LOST:
		read_lost(run, body);
		break;
	case RUN_MISS:
		read_miss(kept, body);
		break;
	case RUN_SCALE:
		read_scale(run, body);
		break;
	case RUN_RETURNS:
		run->returns = bytes_varint(body) != 0;
		break;
	case RUN_HOLDS:
		run->holds = bytes_varint(body);
		run->longest_hold_ns = bytes_varint(body);
		break;
	case RUN_OVERHEAD:
		run->overhead_percent = read_percent(body);
		run->overhead_most_percent = read_percent(body);
		break;
	case RUN_HOSTNAME:
		read_text(&run->hostname, body);
		break;
	case RUN_BOOT:
		read_text(&run->boot, body);
		break;
	case RUN_KERNEL_RELEASE:
		read_text(&run->kernel_release, body);
		break;
	case RUN_DRIVER_VERSION:
		read_text(&run->driver_version, body);
		break;
	case RUN_COMMAND:
		read_text(&run->command, body);
		break;
	case RUN_CHOSEN:
		read_text(&run->chosen, body);
		break;
	case RUN_REASON:
		read_text(&run->reason, body);
		break;
	case RUN_GPU:
		run->gpu_times = bytes_varint(body) != 0;
		run->gpu_clock_error_ns = bytes_varint(body);
		break;
	case RUN_MACHINE:
		read_machine(run, body);
		break;
	case RUN_DEVICE:
		read_device(run, body);
		break;
	case RUN_STACKS:
		read_stacks(&run->stacks, body);
		break;
	case RUN_BLOCKED:
		run->stacks.blocked = true;
		run->stacks.blocked_ns = bytes_varint(body);
		break;
	case RUN_HOST_WAITS:
		run->stacks.host_waits = true;
		run->stacks.blocked_ns = bytes_varint(body);
		break;
	case RUN_METRICS:
		read_metrics(&run->metrics, body);
		break;
	case RUN_STRETCHES:
		read_stretches(&run->stretches, body);
		break;
	case RUN_IDENTITY:
		run_identity_read(run, body);
		break;
	case RUN_IDENTITIES_LOST:
		run->identities_left_out = bytes_varint(body);
		break;
	case RUN_WRITER:
		read_text((const char **)&kept->writer, body);
		break;
	default:
		break; /* of a later minor version */
	}
}

static bool offset_fits(int64_t offset_ns)
{
	return offset_ns < (int64_t)FORMAT_TIME_MAX && offset_ns > -(int64_t)FORMAT_TIME_MAX;
}

static bool times_fit(const struct run_info *run)
{
	return run->begin_ns < FORMAT_TIME_MAX && run->end_ns < FORMAT_TIME_MAX &&
	       offset_fits(run->realtime_offset_ns) && offset_fits(run->boottime_offset_ns);
}

bool run_read(struct kept_run *run, const uint8_t *raw, size_t bytes)
{
	struct bytes in = { raw, raw + bytes, false }, body;
	uint64_t field;

	run_free(run);
	run->info.estimate_scale = 1;
	while (record_next(&in, &field, &body)) {
		read_field(run, field, &body);
		if (body.bad)
			return false;
	}
	if (run->info.end_ns < run->info.begin_ns) /* everyone computes with the length */
		run->info.end_ns = run->info.begin_ns;
	return !in.bad && times_fit(&run->info);
}
