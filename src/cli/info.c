// SPDX-License-Identifier: MIT
/* `cuscope info`: what is in a trace file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/missed.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "report/contents.h"
#include "report/who_columns.h"
#include "table/table.h"
#include "trace/reader.h"

/* The table of processes of `cuscope info`, in both forms. */

struct shown_process {
	struct contents_process process;
	struct who_words who;
};

#define AT(member) TABLE_AT(struct shown_process, process.member)

static const struct table_column process_columns[] = {
	{ "PID", TABLE_NUMBER, AT(process.pid), "pid" },
	{ "PROCESS", TABLE_WORDS, AT(process.comm), "comm" },
	{ "THREADS", TABLE_NUMBER, AT(threads), "threads" },
	{ "CALLS", TABLE_NUMBER, AT(calls), "calls" },
	{ "ON THE GPU", TABLE_NUMBER, AT(activities), "activities" },
	{ "ENDED", TABLE_WORDS, AT(ended), "ended" },
};

/*
 * To one of the two. 0 or a negative errno. For people those that did nothing with CUDA, shells
 * and the like, are a number.
 */
static int info_add_processes(const struct contents *contents, const struct run_info *run,
                              struct buf *text, struct json *json, struct err *err)
{
	struct table_column all[ARRAY_SIZE(process_columns) + RUN_IDENTITY_WORDS];
	size_t n_columns = ARRAY_SIZE(process_columns);
	struct table *table =
		table_open(&(struct table_options){ .page = text, .json = json }, false);
	size_t others = 0;
	int rc;

	memcpy(all, process_columns, sizeof(process_columns));
	n_columns += who_columns(run, offsetof(struct shown_process, who), true, &all[n_columns]);
	table_begin(table, "processes", "PROCESSES", all, n_columns);
	for (size_t i = 0; i < contents->n_processes; i++) {
		struct shown_process shown = { .process = contents->processes[i] };

		who_words_of(run, shown.process.process.pid, shown.process.begin_ns, &shown.who);
		if (json || shown.process.calls || shown.process.activities)
			table_row(table, &shown);
		else
			others++;
	}
	table_note_if(table, run->identities_left_out,
	              "of %lu processes it is not known who they are", run->identities_left_out);
	table_note_if(table, others, "and %zu process%s without a CUDA call", others,
	              others == 1 ? "" : "es");
	rc = table_end(table, err);
	table_close(table);
	return rc;
}

struct info_options {
	const char *path;
	bool json;
};

/* All that is told, from the file and from reading it to its end. */
struct info {
	const char *path;
	struct trace_file *file;
	const struct run_info *run;
	struct trace_shape shape;
	const struct contents *contents;
	uint64_t events;
	const char *damage; /* what is wrong with the file; NULL: nothing */
};

/* ---- options ------------------------------------------------------------------------------- */

static bool info_word(const struct argp_state *state, void *into, char *word)
{
	struct info_options *o = into;

	if (o->path)
		option_bad_usage(state, "one file at a time");
	o->path = word;
	return true;
}

static void info_end(const struct argp_state *state, void *into)
{
	if (!((struct info_options *)into)->path)
		option_bad_usage(state, "which trace file? 'cuscope record' makes one");
}

static const struct option_row rows[] = {
	{ "json", 0, NULL, "as JSON", OPTION_YES, offsetof(struct info_options, json) },
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .word = info_word, .end = info_end },
	.operands = "FILE",
	.doc = "Says when and where a trace file was recorded, what is in it, and what was missed.",
};

/* ---- what both forms need ------------------------------------------------------------------ */

static int64_t begin_realtime_ns(const struct run_info *run)
{
	return (int64_t)run->begin_ns + run->realtime_offset_ns;
}

static uint64_t duration_ns(const struct run_info *run)
{
	return run->end_ns > run->begin_ns ? run->end_ns - run->begin_ns : 0;
}

/* ---- text ---------------------------------------------------------------------------------- */

/* By hand, but for the processes: each line has words of its own around what is known. */

static void add_label(struct buf *out, const char *label)
{
	buf_printf(out, "%-12s", label);
}

static void add_text_line(struct buf *out, const char *label, const char *text)
{
	if (!text)
		return;
	add_label(out, label);
	text_add_safe(out, text);
	buf_putc(out, '\n');
}

/* What was cut short and is damaged besides has two reasons. */
static void add_complete(struct buf *out, const struct info *info)
{
	const char *no_end = "it has no end (still being recorded, a crash or a full disk)";

	add_label(out, "complete");
	if (!info->damage && !info->run->cut_short) {
		buf_puts(out, "yes\n");
		return;
	}
	buf_puts(out, "no: ");
	if (info->damage)
		text_add_safe(out, info->damage);
	if (info->run->cut_short)
		buf_printf(out, "%s%s", info->damage ? "; and " : "", no_end);
	if (info->run->end_damaged)
		buf_puts(out, "; its end is among that");
	if (info->run->cut_short || info->run->end_damaged)
		buf_puts(out, "; what was lost is not known");
	buf_putc(out, '\n');
}

static void add_file(struct buf *out, const struct info *info)
{
	const struct trace_shape *shape = &info->shape;

	add_label(out, "file");
	text_add_safe(out, info->path);
	buf_puts(out, ": ");
	buf_bytes(out, shape->bytes);
	buf_printf(out, ", format %u.%u", shape->major, shape->minor);
	if (shape->writer) {
		buf_puts(out, ", by ");
		text_add_safe(out, shape->writer);
	}
	buf_putc(out, '\n');
	add_complete(out, info);
}

static void add_when(struct buf *out, const struct run_info *run)
{
	int64_t ns = begin_realtime_ns(run);
	time_t seconds = (time_t)(ns / 1000000000);
	char text[64] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	add_label(out, "recorded");
	buf_printf(out, "%s, for ", text);
	buf_duration(out, duration_ns(run));
	buf_puts(out, run->returns ? "\n" : ", without returns\n");
}

static void add_machine(struct buf *out, const struct run_info *run)
{
	if (!run->machine)
		return;
	add_label(out, "machine");
	text_add_safe(out, run->machine);
	if (run->cpus)
		buf_printf(out, ", %u CPU%s", run->cpus, run->cpus == 1 ? "" : "s");
	if (run->memory_bytes) {
		buf_puts(out, ", ");
		buf_bytes(out, run->memory_bytes);
		buf_puts(out, " of memory");
	}
	buf_putc(out, '\n');
}

/* Numbered by their buses, as nvidia-smi does; a program's numbers can be others. */
static void add_gpus(struct buf *out, const struct run_info *run)
{
	for (size_t i = 0; i < run->n_gpus; i++) {
		const struct run_gpu *gpu = &run->gpus[i];

		buf_printf(out, "GPU %-8zu", i);
		text_add_safe(out, gpu->name[0] ? gpu->name : "unknown");
		if (gpu->memory_bytes) {
			buf_puts(out, ", ");
			buf_bytes(out, gpu->memory_bytes);
		}
		if (gpu->bus[0]) {
			buf_puts(out, ", bus ");
			text_add_safe(out, gpu->bus);
		}
		buf_putc(out, '\n');
	}
}

static void add_where(struct buf *out, const struct run_info *run)
{
	add_text_line(out, "host", run->hostname);
	add_machine(out, run);
	add_text_line(out, "kernel", run->kernel_release);
	add_text_line(out, "driver", run->driver_version);
	add_gpus(out, run);
	info_add_metrics(out, run);
	add_text_line(out, "command", run->command);
	add_text_line(out, "chosen by", run->chosen);
	add_text_line(out, "reason", run->reason);
}

static uint64_t sum(const uint64_t *counts, size_t n)
{
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++)
		all += counts[i];
	return all;
}

static void add_part(struct buf *out, uint64_t count, const char *what)
{
	if (count)
		buf_printf(out, ", %lu %s", count, what);
}

static void add_gpu(struct buf *out, const struct info *info)
{
	const struct contents *contents = info->contents;
	uint64_t error_ns = info->run->gpu_clock_error_ns;
	uint64_t ranges = sum(contents->ranges, RANGE_COUNT);

	add_label(out, "on the GPU");
	if (!sum(contents->activities, ACTIVITY_COUNT) && !info->run->gpu_times) {
		buf_puts(out, missed_gpu_times(info->run)
		                      ? "nothing: there are no GPU times (see what was missed)\n"
		                      : "not recorded (cuscope record --gpu)\n");
		return;
	}
	buf_printf(out, "%lu %s", contents->activities[ACTIVITY_KERNEL],
	           activity_words[ACTIVITY_KERNEL].many);
	for (size_t i = ACTIVITY_KERNEL + 1; i < ACTIVITY_COUNT; i++)
		add_part(out, contents->activities[i], activity_words[i].many);
	if (error_ns) {
		buf_puts(out, "; times within ");
		buf_duration(out, error_ns);
	}
	buf_putc(out, '\n');
	if (!ranges)
		return;
	add_label(out, "ranges");
	buf_u64(out, ranges);
	for (size_t i = 0; i < RANGE_COUNT; i++)
		add_part(out, contents->ranges[i], range_words[i].many);
	buf_putc(out, '\n');
}

/* "of 211 samples, 120 calls; 148 different, 99.9 % whole"; a line only where they were recorded.
 */
static void add_stacks(struct buf *out, const struct info *info)
{
	const struct contents_stacks *stacks = &info->contents->stacks;
	const struct run_stacks *asked = &info->run->stacks;
	uint64_t all = stack_counts_all(&stacks->counts);

	if (!all && !asked->sample_ns && !asked->calls && !asked->blocked)
		return;
	add_label(out, "stacks");
	buf_printf(out, "of %lu samples", stacks->samples);
	if (asked->sample_ns)
		buf_printf(out, " (%lu a second of each CPU)", 1000000000 / asked->sample_ns);
	buf_printf(out, ", %lu calls", stacks->calls);
	add_part(out, stacks->different, "different");
	if (stacks->blocked) {
		add_part(out, stacks->blocked,
		         stacks->blocked == 1 ? "time blocked, for " : "times blocked, for ");
		buf_duration(out, stacks->blocked_ns);
	}
	if (all)
		buf_printf(out, ", %.1f %% %s",
		           100.0 * (double)stack_counts_begun(&stacks->counts) / (double)all,
		           stack_counts_word(&stacks->counts));
	buf_putc(out, '\n');
	if (all == stack_counts_whole(&stacks->counts))
		return;
	add_label(out, "not whole");
	stack_counts_add_cut(&stacks->counts, out);
	buf_printf(out, " (of %lu)\n", all);
}

/* Which events there are: they are more than the calls below. */
static void add_kinds(struct buf *out, const struct info *info)
{
	const struct contents *contents = info->contents;
	uint64_t activities = sum(contents->activities, ACTIVITY_COUNT);
	uint64_t ranges = sum(contents->ranges, RANGE_COUNT);
	uint64_t damaged = info->run->damaged_events;
	uint64_t samples = contents->stacks.samples, off_cpu = contents->stacks.off_cpu;
	uint64_t kernel = contents->others[LAYER_KERNEL], hooked = contents->others[LAYER_HOOK];
	uint64_t known = contents->calls + activities + ranges + samples + off_cpu +
	                 contents->metrics + contents->stalls + kernel + hooked + damaged;

	buf_printf(out, ": %lu calls", contents->calls);
	add_part(out, kernel, "of the kernel side");
	add_part(out, hooked, "of hooks");
	add_part(out, activities, "on the GPU");
	add_part(out, ranges, "ranges");
	add_part(out, samples, "samples");
	add_part(out, off_cpu, "of blocked time");
	add_part(out, contents->metrics, "of GPU metrics");
	add_part(out, contents->stalls, "of stalls");
	if (info->events > known)
		add_part(out, info->events - known, "begins and ends of processes and threads");
	add_part(out, damaged, "in damaged parts or of no use without them");
}

static void add_events(struct buf *out, const struct info *info)
{
	const struct contents *contents = info->contents;

	add_label(out, "events");
	buf_printf(out, "%lu in %lu chunk%s", info->events, info->shape.event_chunks,
	           info->shape.event_chunks == 1 ? "" : "s");
	if (info->events)
		buf_printf(out, ", %.1f bytes each",
		           (double)info->shape.bytes / (double)info->events);
	add_kinds(out, info);
	buf_putc(out, '\n');
	add_label(out, "calls");
	buf_printf(out, "%lu", contents->calls);
	add_part(out, contents->nested, "nested");
	add_part(out, contents->failed, "failed");
	add_part(out, contents->unfinished, "unfinished");
	add_part(out, contents->captured, "captured into graphs");
	buf_putc(out, '\n');
	add_gpu(out, info);
	add_stacks(out, info);
	buf_printf(out, "%-12s%lu\n%-12s%lu\n", "functions", contents->functions, "kernels",
	           contents->kernels);
}

static int print_text(const struct info *info, struct buf *out, struct err *err)
{
	int rc;

	add_file(out, info);
	add_when(out, info->run);
	add_where(out, info->run);
	add_events(out, info);
	rc = info_add_processes(info->contents, info->run, out, NULL, err);
	buf_puts(out, "\nWHAT WAS MISSED\n");
	missed_text(out, info->run);
	text_wrap_lines(out, 0, cli_width(stdout));
	return rc;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_text_or_null(struct json *json, const char *key, const char *text)
{
	if (text)
		json_string(json, key, text);
	else
		json_null(json, key);
}

static void json_u64_or_null(struct json *json, const char *key, uint64_t number)
{
	if (number)
		json_u64(json, key, number);
	else
		json_null(json, key);
}

static void json_gpus(struct json *json, const struct run_info *run)
{
	json_open(json, "gpus", '[');
	for (size_t i = 0; i < run->n_gpus; i++) {
		const struct run_gpu *gpu = &run->gpus[i];

		json_open(json, NULL, '{');
		json_u64(json, "index", i);
		json_text_or_null(json, "name", gpu->name[0] ? gpu->name : NULL);
		json_text_or_null(json, "uuid", gpu->uuid[0] ? gpu->uuid : NULL);
		json_text_or_null(json, "bus", gpu->bus[0] ? gpu->bus : NULL);
		json_u64_or_null(json, "memory_bytes", gpu->memory_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_file(struct json *json, const struct info *info)
{
	char format[32];

	snprintf(format, sizeof(format), "%u.%u", info->shape.major, info->shape.minor);
	json_string(json, "file", info->path);
	json_u64(json, "bytes", info->shape.bytes);
	json_string(json, "format", format);
	json_text_or_null(json, "writer", info->shape.writer);
	json_bool(json, "cut_short", info->run->cut_short);
	json_bool(json, "end_damaged", info->run->end_damaged);
	json_text_or_null(json, "damage", info->damage);
	json_s64(json, "begin_realtime_ns", begin_realtime_ns(info->run));
	json_u64(json, "begin_ns", info->run->begin_ns);
	json_u64(json, "duration_ns", duration_ns(info->run));
	json_bool(json, "returns", info->run->returns);
	json_text_or_null(json, "hostname", info->run->hostname);
	json_text_or_null(json, "machine", info->run->machine);
	json_u64_or_null(json, "cpus", info->run->cpus);
	json_u64_or_null(json, "memory_bytes", info->run->memory_bytes);
	json_text_or_null(json, "kernel_release", info->run->kernel_release);
	json_text_or_null(json, "driver_version", info->run->driver_version);
	json_gpus(json, info->run);
	info_json_metrics(json, info->run);
	json_text_or_null(json, "command", info->run->command);
	if (info->run->chosen)
		json_text_or_null(json, "chosen_by", info->run->chosen);
	if (info->run->reason)
		json_text_or_null(json, "reason", info->run->reason);
}

static void json_stacks(struct json *json, const struct info *info)
{

	/* by the bits of enum stack_calls */
	static const char *const calls[] = { "launches", "copies", "waits", "allocations" };
	const struct contents_stacks *stacks = &info->contents->stacks;
	const struct run_stacks *asked = &info->run->stacks;

	json_open(json, "stacks", '{');
	json_u64(json, "sample_ns", asked->sample_ns);
	json_bool(json, "of_calls", asked->calls != 0);
	json_open(json, "call_kinds", '[');
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (asked->calls & 1u << i)
			json_string(json, NULL, calls[i]);
	json_close(json, ']');
	json_bool(json, "of_blocked", asked->blocked);
	json_u64(json, "blocked_least_ns", asked->blocked_ns);
	json_u64(json, "samples", stacks->samples);
	json_u64(json, "blocked", stacks->blocked);
	json_u64(json, "blocked_ns", stacks->blocked_ns);
	json_u64(json, "calls", stacks->calls);
	json_u64(json, "different", stacks->different);
	stack_counts_json(&stacks->counts, json);
	json_open(json, "missed", '{');
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++)
		json_u64(json, missed_stacks_key((enum stacks_missed)i), asked->missed[i]);
	json_close(json, '}');
	json_close(json, '}');
}

static void json_events(struct json *json, const struct info *info)
{
	const struct contents *contents = info->contents;

	json_u64(json, "events", info->events);
	json_u64(json, "event_chunks", info->shape.event_chunks);
	json_u64(json, "other_chunks", info->shape.other_chunks);
	json_u64(json, "unpacked_bytes", info->shape.raw_bytes);
	json_u64(json, "calls", contents->calls);
	json_u64(json, "nested", contents->nested);
	json_u64(json, "failed", contents->failed);
	json_u64(json, "unfinished", contents->unfinished);
	json_u64(json, "captured", contents->captured);
	json_u64_if(json, "kernel_side", contents->others[LAYER_KERNEL]);
	json_u64_if(json, "hooks", contents->others[LAYER_HOOK]);
	json_u64_if(json, "stalls", contents->stalls);
	json_u64(json, "threads", contents->threads);
	json_open(json, "activities", '{');
	for (size_t i = 0; i < ACTIVITY_COUNT; i++)
		json_u64(json, activity_words[i].key, contents->activities[i]);
	json_close(json, '}');
	json_open(json, "ranges", '{');
	for (size_t i = 0; i < RANGE_COUNT; i++)
		json_u64(json, range_words[i].key, contents->ranges[i]);
	json_close(json, '}');
	json_bool(json, "gpu_times", info->run->gpu_times);
	json_u64(json, "gpu_clock_error_ns", info->run->gpu_clock_error_ns);
	json_stacks(json, info);
	json_u64(json, "functions", contents->functions);
	json_u64(json, "kernels", contents->kernels);
}

static int print_json(const struct info *info, struct buf *out, struct err *err)
{
	struct json json = { .out = out, .lines = 2 };
	int rc;

	json_open(&json, NULL, '{');
	json_file(&json, info);
	json_events(&json, info);
	rc = info_add_processes(info->contents, info->run, NULL, &json, err);
	json_open(&json, "missed", '{');
	missed_json(&json, info->run);
	json_close(&json, '}');
	json_close(&json, '}');
	buf_putc(out, '\n');
	return rc;
}

/* ---- the command --------------------------------------------------------------------------- */

static int print(const struct info *info, bool json, struct err *err)
{
	AT_END(buf_free) struct buf out = { 0 };
	int r = json ? print_json(info, &out, err) : print_text(info, &out, err);

	if (!r && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)))
		r = err_set(err, errno, "cannot write: %s", strerror(errno));
	return r;
}

/* A damaged file is told of as far as it can be read, and is a failure all the same. */
static int inform(const struct info_options *o, struct err *err)
{
	struct info info = { .path = o->path };
	struct consumer *counter;
	struct err print_err = { 0 };
	int r = trace_open(o->path, &info.file, err), r_print;

	if (r)
		return r;
	counter = contents_new();
	r = trace_read(info.file, NULL, &counter, 1, err);
	info.run = trace_run(info.file);
	info.events = trace_events(info.file);
	info.contents = contents_of(counter);
	info.damage = r ? err->text : NULL;
	trace_shape(info.file, &info.shape);
	r_print = print(&info, o->json, &print_err);
	if (r_print && !r) {
		r = r_print;
		*err = print_err;
	}
	counter->ops->free(counter);
	trace_close(info.file);
	return r;
}

int cli_info(int argc, char **argv)
{
	struct info_options o = { 0 };
	struct err err = { 0 };

	option_parse(&options, argc, argv, false, &o);
	cli_ignore_signals();
	if (!inform(&o, &err))
		return 0;
	cli_say("%s", err.text);
	return EXIT_FAILURE;
}
