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

/* ---- what a run consists of ---------------------------------------------------------------- */

enum run_type {
	RUN_U64, /* or a struct of nothing else, in the order of the file; the first decides */
	RUN_U32,
	RUN_S64,
	RUN_BOOL,
	RUN_PERCENT, /* a double; in hundredths */
	RUN_TEXT,
	RUN_CHARS, /* an array of them */
};

/* A value of a record (docs/trace-format.md). Those of one record follow each other, as in the
 * file. */
struct run_value {
	enum run_field field;
	enum run_type type;
	uint16_t offset;
	uint16_t size;
	bool decides; /* the record is there where this is not 0; without such a value always */
};

#define VALUE(of, field, type, member, ...)                                                        \
	{                                                                                          \
		field, type, offsetof(struct of, member), sizeof(((struct of *)0)->member),        \
			__VA_ARGS__                                                                \
	}

/* In the order in which they are written; what is beyond this many after lists. */
#define VALUES_OF_TIME 4

static const struct run_value values[] = {
	VALUE(run_info, RUN_BEGIN, RUN_U64, begin_ns),
	VALUE(run_info, RUN_END, RUN_U64, end_ns),
	VALUE(run_info, RUN_REALTIME_OFFSET, RUN_S64, realtime_offset_ns),
	VALUE(run_info, RUN_BOOTTIME_OFFSET, RUN_S64, boottime_offset_ns),
	VALUE(run_info, RUN_RETURNS, RUN_BOOL, returns),
	VALUE(run_info, RUN_HOLDS, RUN_U64, holds),
	VALUE(run_info, RUN_HOLDS, RUN_U64, longest_hold_ns),
	VALUE(run_info, RUN_OVERHEAD, RUN_PERCENT, overhead_percent),
	VALUE(run_info, RUN_OVERHEAD, RUN_PERCENT, overhead_most_percent, .decides = true),
	VALUE(run_info, RUN_HOSTNAME, RUN_TEXT, hostname, .decides = true),
	VALUE(run_info, RUN_BOOT, RUN_TEXT, boot, .decides = true),
	VALUE(run_info, RUN_KERNEL_RELEASE, RUN_TEXT, kernel_release, .decides = true),
	VALUE(run_info, RUN_DRIVER_VERSION, RUN_TEXT, driver_version, .decides = true),
	VALUE(run_info, RUN_COMMAND, RUN_TEXT, command, .decides = true),
	VALUE(run_info, RUN_CHOSEN, RUN_TEXT, chosen, .decides = true),
	VALUE(run_info, RUN_REASON, RUN_TEXT, reason, .decides = true),
	VALUE(run_info, RUN_GPU, RUN_BOOL, gpu_times, .decides = true),
	VALUE(run_info, RUN_GPU, RUN_U64, gpu_clock_error_ns),
	VALUE(run_info, RUN_MACHINE, RUN_TEXT, machine, .decides = true),
	VALUE(run_info, RUN_MACHINE, RUN_U32, cpus),
	VALUE(run_info, RUN_MACHINE, RUN_U64, memory_bytes),
	VALUE(run_info, RUN_METRICS, RUN_U64, metrics, .decides = true),
	VALUE(run_info, RUN_STRETCHES, RUN_U64, stretches, .decides = true),
};

_Static_assert(sizeof(struct run_metrics) == 7 * 8 && sizeof(struct run_stretches) == 6 * 8,
               "these are in files, number by number");

static const struct run_value device[] = {
	VALUE(run_gpu, RUN_DEVICE, RUN_CHARS, name),
	VALUE(run_gpu, RUN_DEVICE, RUN_CHARS, uuid),
	VALUE(run_gpu, RUN_DEVICE, RUN_CHARS, bus),
	VALUE(run_gpu, RUN_DEVICE, RUN_U64, memory_bytes),
	VALUE(run_gpu, RUN_DEVICE, RUN_U64, clock_hz),
	VALUE(run_gpu, RUN_DEVICE, RUN_U64, memory_bandwidth),
	VALUE(run_gpu, RUN_DEVICE, RUN_U32, major),
	VALUE(run_gpu, RUN_DEVICE, RUN_U32, minor),
	VALUE(run_gpu, RUN_DEVICE, RUN_U32, multiprocessors),
};

/* ---- writing ------------------------------------------------------------------------------- */

static void add_numbers(struct buf *raw, enum run_field field, uint64_t one, const uint64_t *two)
{
	AT_END(buf_free) struct buf body = { 0 };

	record_varint(&body, one);
	if (two)
		record_varint(&body, *two);
	record_add(raw, field, &body);
}

static void add_value(struct buf *body, const struct run_value *value, const void *record)
{
	const void *at = (const char *)record + value->offset;

	switch (value->type) {
	case RUN_U64:
		for (size_t i = 0; i < value->size / sizeof(uint64_t); i++)
			record_varint(body, ((const uint64_t *)at)[i]);
		break;
	case RUN_U32:
		record_varint(body, *(const uint32_t *)at);
		break;
	case RUN_S64:
		record_varint(body, fold(*(const uint64_t *)at));
		break;
	case RUN_BOOL:
		record_varint(body, *(const bool *)at);
		break;
	case RUN_PERCENT:
		record_varint(body, (uint64_t)(100 * *(const double *)at + 0.5));
		break;
	case RUN_TEXT:
		record_text(body, *(const char *const *)at);
		break;
	case RUN_CHARS:
		record_text(body, at);
		break;
	}
}

static bool is_set(const struct run_value *value, const void *record)
{
	static const char zero[sizeof(uint64_t)];
	size_t size = value->size < sizeof(zero) ? value->size : sizeof(zero);

	return memcmp((const char *)record + value->offset, zero, size) != 0;
}

/* Each record that is there. */
static void add_values(struct buf *raw, const struct run_value *of, size_t n, const void *record)
{
	AT_END(buf_free) struct buf body = { 0 };
	bool there = true;

	for (size_t i = 0; i < n; i++) {
		there = there && (!of[i].decides || is_set(&of[i], record));
		add_value(&body, &of[i], record);
		if (i + 1 < n && of[i + 1].field == of[i].field)
			continue;
		if (there)
			record_add(raw, of[i].field, &body);
		buf_reset(&body);
		there = true;
	}
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
	AT_END(buf_free) struct buf body = { 0 };

	record_varint(&body, miss->kind);
	record_varint(&body, miss->pid);
	add_miss_text(&body, miss->name);
	add_miss_text(&body, miss->lib);
	add_miss_text(&body, miss->why);
	record_varint(&body, miss->processes);
	if (miss->calls)
		record_varint(&body, miss->calls);
	record_add(raw, RUN_MISS, &body);
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
	AT_END(buf_free) struct buf body = { 0 };
	uint8_t bytes[8];
	uint64_t bits;

	memcpy(&bits, &scale, sizeof(bits));
	put_fixed(bytes, bits, sizeof(bytes));
	buf_add(&body, bytes, sizeof(bytes));
	record_add(raw, RUN_SCALE, &body);
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
	AT_END(buf_free) struct buf body = { 0 };

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
}

void run_write(const struct run_info *run, struct buf *raw)
{
	struct buf body = { 0 };

	buf_reset(raw);
	record_text(&body, "cuscope " CUSCOPE_VERSION);
	record_add(raw, RUN_WRITER, &body);
	buf_free(&body);
	add_values(raw, values, VALUES_OF_TIME, run);
	for (uint64_t i = 0; i < LOST_COUNT; i++) {
		if (run->lost[i])
			add_numbers(raw, RUN_LOST, i, &run->lost[i]);
	}
	add_misses(raw, run);
	add_scale(raw, run->estimate_scale);
	add_values(raw, values + VALUES_OF_TIME, ARRAY_SIZE(values) - VALUES_OF_TIME, run);
	for (size_t i = 0; i < run->n_gpus; i++)
		add_values(raw, device, ARRAY_SIZE(device), &run->gpus[i]);
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
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (values[i].type == RUN_TEXT)
			free(*(char **)((char *)&run->info + values[i].offset));
	}
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

/* Tracing costs at most nine times a thread's own time: governor.c knows it no better. */
static double read_percent(struct bytes *body)
{
	uint64_t hundredths = bytes_varint(body);

	return (hundredths < 100000 ? (double)hundredths : 100000) / 100;
}

static void read_text(char **text, struct bytes *body)
{
	free(*text);
	*text = record_string(body);
}

static void read_value(const struct run_value *value, void *record, struct bytes *body)
{
	void *at = (char *)record + value->offset;
	char *all;

	switch (value->type) {
	case RUN_U64:
		for (size_t i = 0; i < value->size / sizeof(uint64_t); i++)
			((uint64_t *)at)[i] = bytes_varint(body);
		break;
	case RUN_U32:
		*(uint32_t *)at = (uint32_t)bytes_varint(body);
		break;
	case RUN_S64:
		*(uint64_t *)at = unfold(bytes_varint(body));
		break;
	case RUN_BOOL:
		*(bool *)at = bytes_varint(body) != 0;
		break;
	case RUN_PERCENT:
		*(double *)at = read_percent(body);
		break;
	case RUN_TEXT:
		read_text(at, body);
		break;
	case RUN_CHARS:
		all = record_string(body);
		snprintf(at, value->size, "%s", all);
		free(all);
		break;
	}
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
	for (size_t i = 0; i < ARRAY_SIZE(device); i++)
		read_value(&device[i], gpu, body);
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

static void read_field(struct kept_run *kept, uint64_t field, struct bytes *body)
{
	struct run_info *run = &kept->info;

	switch (field) {
	case RUN_LOST:
		read_lost(run, body);
		break;
	case RUN_MISS:
		read_miss(kept, body);
		break;
	case RUN_SCALE:
		read_scale(run, body);
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
	case RUN_IDENTITY:
		run_identity_read(run, body);
		break;
	case RUN_IDENTITY_GPUS:
		run_identity_read_gpus(run, body);
		break;
	case RUN_IDENTITY_MEMORY:
		run_identity_read_memory(run, body);
		break;
	case RUN_IDENTITIES_LOST:
		run->identities_left_out = bytes_varint(body);
		break;
	case RUN_WRITER:
		read_text(&kept->writer, body);
		break;
	default:
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			if (values[i].field == field) /* no row: of a later minor version */
				read_value(&values[i], run, body);
		}
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
