// SPDX-License-Identifier: MIT
#include "report/reports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/missed.h"
#include "analysis/spread.h"
#include "analysis/work.h"
#include "analysis/xids.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "trace/event.h"

/* What a row says of a report beside its name, its help and its kind. */
#define OF_GPU .gpu_times = true
#define NAMES  .kernel_names = true
#define PLACES .places = true
#define PARTS  .parts = true
#define PAGE   .page = true
#define AGAIN  .again = true

const struct report reports[] = {
	{ "overview", "one page on all of it", &overview_report, PARTS, AGAIN },
	{ "why", "where the time goes, and what to change first", &why_report, PAGE },
	{ "cuda_api_sum", "CUDA calls by total time", &sums_report, PLACES },
	{ "cuda_api_gpu_sum", "CUDA calls, and what ran on the GPU, by total time", &sums_report,
	  NAMES, AGAIN },
	{ "cuda_api_trace", "every CUDA call, in the order of their begins", &api_trace_report },
	{ "cuda_gpu_kern_sum", "kernels by total time on the GPU", &sums_report, OF_GPU, NAMES },
	{ "cuda_gpu_kern_gb_sum", "kernels by grid and block size", &sums_report, OF_GPU, NAMES,
	  AGAIN },
	{ "cuda_gpu_mem_time_sum", "copies and sets by total time on the GPU", &sums_report,
	  OF_GPU },
	{ "cuda_gpu_mem_size_sum", "copies and sets by total size", &sums_report, OF_GPU, AGAIN },
	{ "cuda_gpu_sum", "kernels, copies and sets by total time on the GPU", &sums_report, OF_GPU,
	  NAMES, AGAIN },
	{ "cuda_gpu_trace", "all that ran on the GPU, in the order of the begins",
	  &gpu_trace_report, OF_GPU, NAMES },
	{ "cuda_kern_exec_sum", "launches with their kernels: call, queue, run",
	  &kern_exec_sum_report, OF_GPU, NAMES },
	{ "cuda_kern_exec_trace", "every launch with its kernel", &kern_exec_trace_report, OF_GPU,
	  NAMES },
	{ "cuda_memcpy_async", "asynchronous copies from or to pageable memory", &expert_report,
	  OF_GPU, AGAIN },
	{ "cuda_memcpy_sync", "synchronous copies", &expert_report, OF_GPU, AGAIN },
	{ "cuda_memset_sync", "synchronous sets of pinned or managed memory", &expert_report,
	  OF_GPU, AGAIN },
	{ "cuda_api_sync", "calls that wait for a device or a stream", &expert_report, AGAIN },
	{ "gpu_gaps", "more than 500 ms without work on a GPU", &gpu_gaps_report, OF_GPU, AGAIN },
	{ "gpu_time_util", "windows in which a GPU was in use below 50 %", &gpu_time_util_report,
	  OF_GPU, AGAIN },
	{ "nvtx_sum", "NVTX ranges by total time", &nvtx_sum_report, OF_GPU },
	{ "nvtx_pushpop_sum", "NVTX ranges that were pushed and popped", &nvtx_sum_report, OF_GPU,
	  AGAIN },
	{ "nvtx_startend_sum", "NVTX ranges that were started and ended", &nvtx_sum_report, OF_GPU,
	  AGAIN },
	{ "nvtx_pushpop_trace", "every range that was pushed and popped",
	  &nvtx_pushpop_trace_report, OF_GPU },
	{ "nvtx_kern_sum", "kernels by the NVTX ranges around their launches",
	  &nvtx_kern_sum_report, OF_GPU, NAMES },
	{ "nvtx_gpu_proj_sum", "NVTX ranges by the time of their work on the GPU",
	  &nvtx_gpu_proj_sum_report, OF_GPU, AGAIN },
	{ "nvtx_gpu_proj_trace", "every NVTX range with the time of its work on the GPU",
	  &nvtx_gpu_proj_trace_report, OF_GPU },
	{ "summary", "what 'cuscope trace' prints at its end", &summary_report, PAGE, AGAIN },
	{ "processes", "what each process did", &processes_report },
	{ "threads", "what each thread did, and how much of its time CUDA took", &threads_report },
	{ "streams", "what was put on each stream, and how long somebody waited for it",
	  &streams_report },
	{ "launches", "kernels by launches, with their sizes and rates", &launches_report, PLACES,
	  PARTS },
	{ "gaps", "how long GPUs were idle, and why", &gaps_report, OF_GPU, NAMES, PARTS },
	{ "memory", "memory by kind and by function, and what stayed", &memory_report, PARTS },
	{ "slowest", "the longest calls", &slowest_report },
	{ "errors", "which calls failed, how, how often and when", &errors_report },
	{ "findings", "what costs time, with evidence and what to try", &findings_report, PARTS },
	{ "overlap", "computing, communication and copies, and how much at once", &overlap_report,
	  OF_GPU, PARTS },
	{ "ranks", "which rank the others wait for in collectives, and why", &ranks_report, PARTS },
	{ "gpu_metrics", "how well GPUs were used: SM, tensor cores, memory, links",
	  &gpu_metrics_report, PARTS },
	{ "stalls", "why kernels waited, by reason and by instruction", &stalls_report, PARTS },
	{ "kernel", "system calls to the NVIDIA driver, and which CUDA calls made them",
	  &kernel_report, PARTS },
	{ "uvm", "faults and migrations of managed memory, and what they hit", &uvm_report, PARTS },
	{ "xids", "what the driver said went wrong, and which calls failed of it", &xids_report },
	{ "channels", "which process holds which channels of a GPU, and how they are set",
	  &channels_report },
	{ "copies", "the bandwidth of copies and sets by direction", &copies_report, OF_GPU },
	{ "launch_stats", "kernels with the time of their launches, their wait and their run",
	  &launch_stats_report, OF_GPU, NAMES, AGAIN },
	{ .name = NULL },
};

static const struct report *find(const char *name, size_t len)
{
	for (const struct report *r = reports; r->name; r++) {
		if (strlen(r->name) == len && !memcmp(r->name, name, len))
			return r;
	}
	return NULL;
}

static int unknown(const char *word, size_t len, struct err *err)
{
	const char *names[64], *near;
	char typed[64];
	size_t n = 0;

	for (const struct report *r = reports; r->name && n < 64; r++)
		names[n++] = r->name;
	snprintf(typed, sizeof(typed), "%.*s", (int)len, word);
	near = suggest(typed, names, n);
	if (near)
		return err_set(err, EINVAL, "there is no report '%s'; did you mean '%s'?", typed,
		               near);
	return err_set(err, EINVAL, "there is no report '%s'; 'cuscope report --help' lists them",
	               typed);
}

/* What stands behind the colon. */
static int choose_form(const char *form, struct report_choice *choice, struct err *err)
{
	const struct report *report = choice->report;

	if (report->places && !strcmp(form, "place")) {
		choice->by_place = true;
		return 0;
	}
	if (!report->kernel_names)
		return err_set(err, EINVAL, "%s takes no ':%s': %s", report->name, form,
		               report->places ? "it takes ':place'" : "it names no kernels");
	if (!strcmp(form, "base"))
		choice->names = NAMES_BASE;
	else if (!strcmp(form, "mangled"))
		choice->names = NAMES_MANGLED;
	else
		return err_set(err, EINVAL, "%s: ':%s' is no form of names (:base or :mangled)",
		               report->name, form);
	return 0;
}

int report_choose(const char *word, struct report_choice *choice, struct err *err)
{
	size_t len = strcspn(word, ":");

	memset(choice, 0, sizeof(*choice));
	choice->report = find(word, len);
	if (!choice->report)
		return unknown(word, len, err);
	return word[len] ? choose_form(word + len + 1, choice, err) : 0;
}

char *report_choice_name(const struct report_choice *choice)
{
	static const char *const ending[] = { "", ":base", ":mangled" };

	return xasprintf("%s%s", choice->report->name,
	                 choice->by_place ? ":place" : ending[choice->names]);
}

void *report_make(size_t size, const struct consumer_ops *ops, const struct report *report,
                  const struct report_options *options)
{
	struct report_writer *writer = xcalloc(1, size);

	writer->consumer.ops = ops;
	writer->report = report;
	writer->options = *options;
	writer->table = options->table;
	return writer;
}

static int writer_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	const struct report_kind *kind = writer->report->kind;
	struct consumer *analysis = writer->analysis;

	writer->ran |= event->type == EVENT_ACTIVITY;
	if (kind->event)
		kind->event(self, event);
	if (writer->xids)
		xids_event(writer->xids, event);
	if (kind->rows_come)
		return table_failed(writer->table, err);
	return analysis ? analysis->ops->event(analysis, event, err) : 0;
}

/* One that has no columns here is begun by what writes it, or is none. */
static void part_begin(struct report_writer *writer, const struct run_info *run,
                       const struct report_part *part)
{
	if (part->columns && part->title)
		report_table(writer, part->key, part->title, part->columns, part->n_columns);
	else if (part->columns)
		report_begin(writer, run, part->key, part->columns, part->n_columns);
}

static int part_end(struct report_writer *writer, struct err *err)
{
	bool open = writer->open;

	writer->open = false;
	return open ? table_end(writer->table, err) : table_failed(writer->table, err);
}

static int writer_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	const struct report_kind *kind = writer->report->kind;

	if (kind->begin)
		kind->begin(self, run);
	if (kind->rows_come) {
		part_begin(writer, run, kind->parts);
		table_in_order(writer->table);
	}
	return writer->analysis ? consumers_begin(&writer->analysis, 1, run, err) : 0;
}

static int writer_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	const struct report_kind *kind = writer->report->kind;
	struct consumer *analysis = writer->analysis;
	int rc = analysis && analysis->ops->end ? analysis->ops->end(analysis, run, err) : 0;

	if (!rc && kind->conclude)
		kind->conclude(self, run);
	for (size_t i = 0; !rc && i < REPORT_PARTS && kind->parts[i].write; i++) {
		if (!writer->open)
			part_begin(writer, run, &kind->parts[i]);
		kind->parts[i].write(self, writer->table, run);
		rc = part_end(writer, err);
	}
	return rc;
}

static void writer_free(struct consumer *self)
{
	struct report_writer *writer = (struct report_writer *)self;

	if (writer->report->kind->clear)
		writer->report->kind->clear(self);
	consumer_free(writer->analysis);
	xids_free(writer->xids);
	work_free(writer->work);
	free(self);
}

struct consumer *report_new(const struct report *report, const struct report_options *options)
{
	const struct report_kind *kind = report->kind;
	struct report_writer *writer =
		report_make(kind->bytes ? kind->bytes : sizeof(*writer), NULL, report, options);

	writer->ops = (struct consumer_ops){ .begin = writer_begin,
		                             .event = writer_event,
		                             .end = kind->end ? kind->end : writer_end,
		                             .free = writer_free,
		                             .metrics = kind->metrics,
		                             .stalls = kind->stalls };
	writer->consumer.ops = &writer->ops;
	writer->analysis = kind->why        ? why_report_kept(options)
	                   : kind->analysis ? kind->analysis()
	                                    : NULL;
	writer->xids = kind->xids ? xids_new() : NULL;
	writer->work = kind->work ? work_share(options->work) : NULL;
	if (kind->init)
		kind->init(writer);
	return &writer->consumer;
}

void report_title(const struct report *report, char *title, size_t size)
{
	snprintf(title, size, "%s: %s", report->name, report->help);
}

void report_table(struct report_writer *writer, const char *key, const char *title,
                  const struct table_column *columns, size_t n)
{
	table_begin(writer->table, key, title, columns, n);
	writer->open = true;
}

bool report_table_of(struct report_writer *writer, size_t rows, const char *key, const char *title,
                     const struct table_column *columns, size_t n)
{
	if (!rows && table_options(writer->table)->form == TABLE_FORM_TEXT)
		return false;
	report_table(writer, key, title, columns, n);
	return true;
}

void report_begin(struct report_writer *writer, const struct run_info *run, const char *key,
                  const struct table_column *columns, size_t n)
{
	unsigned returns = run->returns ? REPORT_RETURNS : 0;
	char title[160];

	writer->begin_ns = run->begin_ns;
	table_of_run(writer->table, table_options(writer->table)->has | returns, run->begin_ns);
	report_title(writer->report, title, sizeof(title));
	report_table(writer, key, title, columns, n);
}

void report_time(const struct report_writer *writer, uint64_t time_ns)
{
	table_u64(writer->table, time_ns > writer->begin_ns ? time_ns - writer->begin_ns : 0);
}

uint64_t report_duration_ns(const struct report_options *options, const struct run_info *run)
{
	uint64_t all = run->end_ns - run->begin_ns;
	uint64_t to = options->to_ns && options->to_ns < all ? options->to_ns : all;

	return to > options->from_ns ? to - options->from_ns : 0;
}

void report_note_no_gpu_times(struct table *table, bool part, const struct run_info *run)
{
	if (run && run->gpu_times) {
		table_note(table,
		           "nothing of this kind ran on a GPU%s, or --gpu was told to leave "
		           "it out",
		           part ? " in this part of the trace" : "");
		return;
	}
	if (part) {
		table_note(table, "nothing ran on a GPU in this part of the trace, or GPU times "
		                  "were not recorded");
		return;
	}
	table_note(table,
	           "GPU times %s: this trace has the calls only (cuda_api_sum, launches and "
	           "memory need no GPU times)",
	           run && missed_gpu_times(run) ? "were wanted, and did not come"
	                                        : "were not recorded (cuscope record --gpu does)");
	if (run)
		report_note_gpu_lost(table, run);
}

bool report_is_chosen(const struct report_options *options, const struct run_info *run)
{
	return options->chosen || run->chosen;
}

void report_note_whole_graphs(struct table *table, uint64_t count)
{
	table_note_if(table, count,
	              "graph launches recorded as wholes, whose kernels are not known: %lu (--gpu "
	              "without 'graphs' records their kernels)",
	              count);
}

void report_note_nested(struct table *table, uint64_t left_out)
{
	table_note_if(table, left_out,
	              "calls made by other calls, left out (--nested shows them): %lu", left_out);
}

void report_note_shutdown(struct table *table, uint64_t calls)
{
	table_note_if(table, calls,
	              "harmless: %lu that came at the end of the process, when CUDA was shut down "
	              "already",
	              calls);
}

void report_note_gpu_lost(struct table *table, const struct run_info *run)
{
	uint64_t lost = missed_of(run->lost, MISSED_GPU_WORK);

	table_note_if(table, lost,
	              "activities of GPUs that were lost: %lu; idle time is less than it seems",
	              lost);
	for (size_t i = 0; i < run->n_misses; i++) {
		const struct miss *miss = &run->misses[i];

		if (miss->kind == MISS_GPU_TIMES && miss->pid)
			table_note(table, "GPU times of process %u are not whole: %s", miss->pid,
			           miss->why ? miss->why : "not known why");
		else if (miss->kind == MISS_GPU_TIMES || miss->kind == MISS_GPU_WINDOWS)
			table_note(table, "GPU times are not whole: %s",
			           miss->why ? miss->why : "not known why");
	}
}

void report_note_busy_short(struct table *table, uint64_t short_ns)
{
	table_note_if(table, short_ns,
	              "busy times can be short by %s in all: of work that became known too late to "
	              "tell whether it ran beside other work",
	              TEXT_DURATION(short_ns));
}

void report_note_no_stacks(struct table *table, const struct run_info *run, uint64_t calls,
                           uint64_t all)
{
	if (calls && !run->stacks.calls)
		table_note(table, "no places: stacks of calls were not recorded (cuscope record "
		                  "--stacks does)");
	else if (calls)
		table_note(table,
		           "calls without a stack: %lu of %lu (of kinds that record --stacks was "
		           "not asked for, beyond its rate, or lost)",
		           calls, all);
}

void report_note_grouped(struct table *table, const char *what, size_t n)
{
	table_note(table,
	           "Count: %s that are alike, of the longest %zu; all else is of the longest of "
	           "them",
	           what, n);
}

void report_spread(struct table *table, struct spread *values)
{
	if (!values->count) {
		for (int i = 0; i < 5; i++)
			table_unknown(table);
		return;
	}
	TABLE_CELLS(table, spread_average(values), spread_median(values), values->min, values->max,
	            spread_deviation(values));
}

void report_note_median(struct table *table)
{
	table_note(table, "medians of more than %d values are within %.1f %%", SPREAD_EXACT,
	           100 * SKETCH_ERROR);
}

#define PARTIAL_SHOWN 8

/* "what: cudaGetDevice (1234567), ..." of each function that was missed in this way. */
static void note_missed(struct table *table, const struct run_info *run, enum miss_kind kind,
                        const char *what)
{
	AT_END(buf_free) struct buf names = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < run->n_misses; i++) {
		const struct miss *miss = &run->misses[i];

		if (miss->kind != kind || !miss->name || n++ >= PARTIAL_SHOWN)
			continue;
		buf_printf(&names, "%s%s", n > 1 ? ", " : "", miss->name);
		if (kind == MISS_COUNTED)
			buf_printf(&names, " (%lu)", miss->calls);
	}
	if (n > PARTIAL_SHOWN)
		buf_printf(&names, " and %zu more", n - PARTIAL_SHOWN);
	table_note_if(table, n, "%s: %s", what, names.data);
}

void report_note_unjoined(const struct report_options *options)
{
	uint64_t unjoined = options->work ? work_unjoined(options->work) : 0;

	table_note_if(options->table, unjoined,
	              "work whose call was forgotten for want of room: %lu", unjoined);
}

void report_note_durations(struct table *table, const struct run_info *run)
{
	table_note_if(table, !run->returns,
	              "no durations: this trace was recorded without returns");
}

void report_note_refused(struct table *table, const struct run_info *run)
{
	for (size_t i = 0; i < run->n_misses; i++) {
		table_note_if(table, run->misses[i].kind == MISS_NOT_LOOKED, "not looked at: %s",
		              run->misses[i].why);
	}
}

void report_note_estimated(struct table *table, const struct run_info *run)
{
	/* by the governor: see struct missed_function */
	note_missed(table, run, MISS_UNHOOKED,
	            "unhooked while they were called, so that counts and times are of what came "
	            "before");
	note_missed(table, run, MISS_COUNTED,
	            "counted inside of processes, and not recorded one by one, so that all else "
	            "here is of other calls");
	table_note_if(table, run->estimate_scale > 1,
	              "calls were recorded in windows of time: about %.2f times as much happened "
	              "as is counted here",
	              run->estimate_scale);
}
