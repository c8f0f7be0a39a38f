// SPDX-License-Identifier: MIT
/*
 * The report `kernel`: system calls to the NVIDIA driver by name, how long they took, and which
 * CUDA calls made them. They come in the order of their ends: so a call stands in the next CUDA
 * call of its thread that began before it.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/managed_use.h"
#include "analysis/spread.h"
#include "analysis/thread_ids.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "report/driver_rows.h"
#include "report/reports.h"
#include "trace/event.h"

#define WAITING_MOST 16384      /* calls of a thread that wait for the CUDA call around them */
#define WAITING_ALL  (1u << 20) /* that there is room for, of all threads together */
#define DECADES      6          /* of durations: below 1 us, 10 us, .. 10 ms, and longer */

/* One kind of call: by function. */
struct kind {
	const struct function *function;
	struct spread ns;
	uint64_t calls, failed, unfinished, decades[DECADES];
	double share; /* of the time of all */
};

/* A CUDA function, and what its calls did in the kernel. */
struct maker {
	const char *name;
	uint64_t calls, ns, driver_calls, driver_ns;
};

struct waiting_call {
	uint64_t begin_ns, ns;
};

struct waiting {
	struct waiting_call *calls;
	size_t n, room;
};

struct kernel_report {
	struct report_writer writer; /* first */
	struct thread_ids *ids;
	struct kind *kinds;
	size_t n_kinds;
	struct maker *makers;
	size_t n_makers;
	struct waiting *threads;
	size_t n_threads, room; /* room: of all threads */
	struct maker outside;   /* calls that no CUDA call made, as far as is known */
	uint64_t unplaced;      /* that there was no room for */
	uint64_t ioctls, ioctl_ns, others, other_ns, failed;
	uint64_t told; /* by functions of the driver, of managed memory and Xids */
};

/* ---- collecting ------------------------------------------------------------------------------ */

static size_t decade_of(uint64_t ns)
{
	uint64_t limit = 1000;
	size_t decade = 0;

	for (; decade + 1 < DECADES && ns >= limit; decade++)
		limit *= 10;
	return decade;
}

static struct waiting *waiting_of(struct kernel_report *report, const struct event *event)
{
	uint32_t id = thread_ids_of(report->ids, event);

	return BY_ID(report->threads, report->n_threads, id);
}

/* What began after `begin_ns` was made by who began then; taken away. */
static struct waiting_call *take_inner(struct waiting *waiting, uint64_t begin_ns, size_t *n)
{
	size_t at = waiting->n;

	while (at && waiting->calls[at - 1].begin_ns >= begin_ns)
		at--;
	*n = waiting->n - at;
	waiting->n = at;
	return at < waiting->room ? waiting->calls + at : NULL; /* not even a beginning yet */
}

/* A file can have as many threads, and as many calls of each, as it likes. */
static bool make_room(struct kernel_report *report, struct waiting *waiting)
{
	size_t more = waiting->room ? waiting->room : 16;

	if (waiting->n < waiting->room)
		return true;
	if (waiting->room == WAITING_MOST || report->room + more > WAITING_ALL)
		return false;
	waiting->room += more;
	report->room += more;
	waiting->calls = xrealloc(waiting->calls, waiting->room * sizeof(*waiting->calls));
	return true;
}

static void wait_for_maker(struct kernel_report *report, const struct event *event, uint64_t ns)
{
	struct waiting *waiting = waiting_of(report, event);
	size_t n;

	take_inner(waiting, event->call->begin_ns, &n); /* their time is in this one's */
	if (!make_room(report, waiting)) {
		report->unplaced++;
		return;
	}
	waiting->calls[waiting->n++] = (struct waiting_call){ event->call->begin_ns, ns };
}

/* Other system calls, and functions of the driver's modules, are named as they are in C. */
static bool is_ioctl(const struct function *function)
{
	return isupper((unsigned char)function->name[0]) || !strncmp(function->name, "ioctl ", 6);
}

static void count_totals(struct kernel_report *report, const struct call *call, uint64_t ns)
{
	bool ioctl = is_ioctl(call->function);

	report->ioctls += ioctl;
	report->ioctl_ns += ioctl ? ns : 0;
	report->others += !ioctl;
	report->other_ns += ioctl ? 0 : ns;
	report->failed += !!(call->flags & CALL_FAILED);
}

static void count_driver_call(struct kernel_report *report, const struct event *event)
{
	const struct call *call = event->call;
	uint64_t ns = call_duration_ns(call);
	struct kind *kind = BY_ID(report->kinds, report->n_kinds, call->function->id);

	kind->function = call->function;
	kind->calls++;
	kind->failed += !!(call->flags & CALL_FAILED);
	count_totals(report, call, ns);
	if (!call_has_end(call)) {
		kind->unfinished++;
		return;
	}
	spread_add(&kind->ns, ns);
	kind->decades[decade_of(ns)]++;
	wait_for_maker(report, event, ns);
}

static void give(struct maker *maker, const struct waiting_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		maker->driver_calls++;
		maker->driver_ns += calls[i].ns;
	}
}

static void count_cuda_call(struct kernel_report *report, const struct event *event)
{
	struct waiting *waiting = waiting_of(report, event);
	const struct call *call = event->call;
	const struct waiting_call *inner;
	struct maker *maker;
	size_t n;

	if (call->flags & CALL_NESTED)
		return;
	maker = BY_ID(report->makers, report->n_makers, call->function->id);
	maker->name = call->function->name;
	maker->calls++;
	maker->ns += call_duration_ns(call);
	inner = take_inner(waiting, call->begin_ns, &n);
	give(maker, inner, n);
	give(&report->outside, waiting->calls, waiting->n);
	waiting->n = 0;
}

static void take_event(void *self, const struct event *event)
{
	struct kernel_report *report = self;
	struct managed told;

	if (event->type == EVENT_CALL)
		count_cuda_call(report, event);
	else if (event->type == EVENT_OTHER_CALL && event->call->function->layer == LAYER_KERNEL &&
	         managed_parse(event->call->function->name, &told))
		report->told++; /* no system call */
	else if (event->type == EVENT_OTHER_CALL && event->call->function->layer == LAYER_KERNEL)
		count_driver_call(report, event);
}

/* ---- writing --------------------------------------------------------------------------------- */

static const struct table_column total_columns[] = {
	{ "IOCTL Calls", TABLE_NUMBER, TABLE_AT(struct kernel_report, ioctls) },
	{ "Total IOCTL Time", TABLE_DURATION, TABLE_AT(struct kernel_report, ioctl_ns) },
	{ "Other Calls", TABLE_NUMBER, TABLE_AT(struct kernel_report, others) },
	{ "Their Time", TABLE_DURATION, TABLE_AT(struct kernel_report, other_ns) },
	{ "Failed", TABLE_NUMBER, TABLE_AT(struct kernel_report, failed) },
};

static const struct table_column kind_columns[] = {
	{ "Time", TABLE_PERCENT, TABLE_AT(struct kind, share) },
	{ "Total Time", TABLE_DURATION },
	{ "Calls", TABLE_NUMBER, TABLE_AT(struct kind, calls) },
	{ "Avg", TABLE_DURATION },
	{ "Med", TABLE_DURATION },
	{ "p99", TABLE_DURATION },
	{ "Max", TABLE_DURATION },
	{ "Failed", TABLE_NUMBER, TABLE_AT(struct kind, failed) },
	{ "Library", TABLE_WORDS },
	{ "Name", TABLE_TEXT },
};

static const struct table_column maker_columns[] = {
	{ "In The Driver", TABLE_DURATION, TABLE_AT(struct maker, driver_ns) },
	{ "Total Time", TABLE_DURATION, TABLE_AT(struct maker, ns), .flags = TABLE_ZERO },
	{ "Share", TABLE_PERCENT },
	{ "Driver Calls", TABLE_NUMBER, TABLE_AT(struct maker, driver_calls) },
	{ "Calls", TABLE_NUMBER, TABLE_AT(struct maker, calls) },
	{ "Each", TABLE_REAL },
	{ "Name", TABLE_TEXT, TABLE_AT(struct maker, name) },
};

static const struct table_column latency_columns[] = {
	{ "< 1 us", TABLE_NUMBER },
	{ "< 10 us", TABLE_NUMBER },
	{ "< 100 us", TABLE_NUMBER },
	{ "< 1 ms", TABLE_NUMBER },
	{ "< 10 ms", TABLE_NUMBER },
	{ "longer", TABLE_NUMBER },
	{ "Never", TABLE_NUMBER, TABLE_AT(struct kind, unfinished) },
	{ "Name", TABLE_TEXT },
};

ORDER_BY(by_time, struct kind, DOWN(ns.sum), DOWN(calls),
         a->function && b->function ? BY_TEXT(function->name) : !a->function - !b->function);

ORDER_BY(by_driver_time, struct maker, DOWN(driver_ns),
         a->name && b->name ? BY_TEXT(name) : !a->name - !b->name);

static void write_kinds(void *self, struct table *table, const struct run_info *run)
{
	struct kernel_report *report = self;
	uint64_t all_ns = report->ioctl_ns + report->other_ns;

	for (size_t i = 0; i < report->n_kinds; i++) {
		struct kind *kind = &report->kinds[i];

		if (!kind->calls)
			continue;
		kind->share = all_ns ? 100.0 * (double)kind->ns.sum / (double)all_ns : 0;
		table_fields(table, kind);
		table_u64(table, kind->ns.sum);
		table_fields(table, kind);
		TABLE_CELLS(table, spread_average(&kind->ns), spread_median(&kind->ns),
		            spread_percentile(&kind->ns, 0.99), kind->ns.max);
		table_fields(table, kind);
		TABLE_CELLS(table, kind->function->lib, kind->function->name);
		table_row(table, kind);
	}
}

static void write_latencies(void *self, struct table *table, const struct run_info *run)
{
	struct kernel_report *report = self;

	for (size_t i = 0; i < report->n_kinds; i++) {
		const struct kind *kind = &report->kinds[i];

		if (!kind->calls)
			continue;
		for (size_t j = 0; j < DECADES; j++)
			table_u64(table, kind->decades[j]);
		table_fields(table, kind);
		table_text(table, kind->function->name);
		table_row(table, kind);
	}
}

static void write_maker(struct table *table, const struct maker *maker)
{
	table_fields(table, maker);
	table_real(table, maker->ns ? 100.0 * (double)maker->driver_ns / (double)maker->ns : NAN);
	table_fields(table, maker);
	table_real(table, maker->calls ? (double)maker->driver_calls / (double)maker->calls : NAN);
	table_row(table, maker);
}

static void write_makers(void *self, struct table *table, const struct run_info *run)
{
	struct kernel_report *report = self;

	for (size_t i = 0; i < report->n_makers; i++) {
		if (report->makers[i].driver_calls)
			write_maker(table, &report->makers[i]);
	}
	report->outside.name = "(in no CUDA call)";
	if (report->outside.driver_calls)
		write_maker(table, &report->outside);
	table_note_if(table, report->unplaced,
	              "calls that are in none of these rows, for want of room: %lu",
	              report->unplaced);
}

static void note_missed(struct table *table, const struct run_info *run)
{
	for (enum lost_reason i = 0; i < LOST_COUNT; i++) {
		table_note_if(table, run->lost[i], "%lu: %s", run->lost[i], lost_reason_text(i));
	}
}

/* What began before a thread's last CUDA call had ended is placed; the rest is in none. */
static void place_rest(struct kernel_report *report)
{
	for (size_t i = 0; i < report->n_threads; i++) {
		give(&report->outside, report->threads[i].calls, report->threads[i].n);
		report->threads[i].n = 0;
	}
}

static void write_totals(void *self, struct table *table, const struct run_info *run)
{
	struct kernel_report *report = self;

	table_row(table, report);
	if (!report->ioctls && !report->others)
		table_note(table, "no system calls to the driver were recorded: 'cuscope record "
		                  "--kernel' takes them");
	else
		note_missed(table, run);
}

/* These two are not there where no function of the driver told of anything. */

static void write_managed(void *self, struct table *table, const struct run_info *run)
{
	struct kernel_report *report = self;

	if (!report->told)
		return;
	report_table(&report->writer, "managed", "Managed memory", TABLE_COLUMNS(managed_columns));
	managed_rows_write(table, report->writer.analysis);
}

static void write_xids(void *self, struct table *table, const struct run_info *run)
{
	struct kernel_report *report = self;

	if (!report->told)
		return;
	report_table(&report->writer, "xids", "Xids", TABLE_COLUMNS(xid_columns));
	xid_rows_write(table, report->writer.xids);
}

static void init_report(void *self)
{
	((struct kernel_report *)self)->ids = thread_ids_new();
}

static void conclude_report(void *self, const struct run_info *run)
{
	struct kernel_report *report = self;

	place_rest(report);
	SORT(report->kinds, report->n_kinds, by_time);
	SORT(report->makers, report->n_makers, by_driver_time);
}

static void clear_report(void *self)
{
	struct kernel_report *report = self;

	for (size_t i = 0; i < report->n_kinds; i++)
		spread_free(&report->kinds[i].ns);
	for (size_t i = 0; i < report->n_threads; i++)
		free(report->threads[i].calls);
	FREE_ALL(report->kinds, report->makers, report->threads);
	thread_ids_free(report->ids);
}

const struct report_kind kernel_report = {
	.bytes = sizeof(struct kernel_report),
	.init = init_report,
	.analysis = managed_use_new,
	.xids = true,
	.event = take_event,
	.conclude = conclude_report,
	.clear = clear_report,
	.parts = { { "totals", NULL, TABLE_COLUMNS(total_columns), write_totals },
	           { "calls", "System calls to the driver by total time",
	             TABLE_COLUMNS(kind_columns), write_kinds },
	           { "latencies", "How long they took", TABLE_COLUMNS(latency_columns),
	             write_latencies },
	           { "cuda_calls", "CUDA calls by their time in the driver",
	             TABLE_COLUMNS(maker_columns), write_makers },
	           { .write = write_managed },
	           { .write = write_xids } },
};
