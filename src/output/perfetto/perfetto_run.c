// SPDX-License-Identifier: MIT
/* What a trace says about itself. */
#include "analysis/missed.h"
#include "base/array.h"
#include "base/text.h"
#include "output/perfetto/perfetto.h"

enum clock_field { CLOCKS = 1, CLOCK_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum default_field { DEFAULT_CLOCK_ID = 58, DEFAULT_PERF_SAMPLE = 12 };
enum perf_field {
	PERF_TIMEBASE = 1,
	TIMEBASE_FREQUENCY = 2,
	TIMEBASE_COUNTER = 4,
	TIMEBASE_NAME = 10
};
enum { COUNTER_CPU_CLOCK = 1 };
enum system_field { SYSTEM_UTSNAME = 1, SYSTEM_SERVICE_VERSION = 4 };
enum utsname_field { UTSNAME_SYSNAME = 1, UTSNAME_RELEASE = 3, UTSNAME_MACHINE = 4 };

static void add_clock(struct buf *out, uint32_t id, uint64_t time_ns)
{
	size_t clock = pb_begin(out, CLOCKS);

	pb_varint(out, CLOCK_ID, id);
	pb_varint(out, CLOCK_TIME, time_ns);
	pb_end(out, clock);
}

/* What samples on CPUs are taken by. */
static void add_timebase(struct buf *out, uint64_t sample_ns)
{
	size_t perf = pb_begin(out, DEFAULT_PERF_SAMPLE);
	size_t timebase = pb_begin(out, PERF_TIMEBASE);

	pb_varint(out, TIMEBASE_FREQUENCY, (1000000000 + sample_ns / 2) / sample_ns);
	pb_varint(out, TIMEBASE_COUNTER, COUNTER_CPU_CLOCK);
	pb_string(out, TIMEBASE_NAME, "time on CPUs");
	pb_end(out, timebase);
	pb_end(out, perf);
}

/*
 * Times are those of CLOCK_MONOTONIC; this says when that was. trace_processor wants to relate each
 * clock to CLOCK_BOOTTIME, too, and reports clocks that it cannot. Where the file does not say how
 * long the machine had slept, it is taken for one that never did.
 */
static void add_clocks(struct sink *sink, const struct run_info *run)
{
	struct buf *out = &sink->lines.pending;
	size_t packet = packet_begin(out, SEQUENCE_CLEARED), inner;

	pb_varint(out, PACKET_FIRST_ON_SEQUENCE, 1);
	inner = pb_begin(out, PACKET_DEFAULTS);
	pb_varint(out, DEFAULT_CLOCK_ID, CLOCK_ID_MONO);
	if (run->stacks.sample_ns)
		add_timebase(out, run->stacks.sample_ns);
	pb_end(out, inner);
	inner = pb_begin(out, PACKET_CLOCK_SNAPSHOT);
	add_clock(out, CLOCK_ID_MONO, sink->begin_ns);
	add_clock(out, CLOCK_ID_REALTIME, sink->begin_ns + (uint64_t)sink->realtime_offset_ns);
	add_clock(out, CLOCK_ID_BOOTTIME, sink->begin_ns + (uint64_t)run->boottime_offset_ns);
	pb_varint(out, CLOCK_PRIMARY, CLOCK_ID_MONO);
	pb_end(out, inner);
	pb_end(out, packet);
}

/* The file may be anybody's. */
static void add_safe(struct buf *out, uint32_t field, const char *text)
{
	AT_END(buf_free) struct buf safe = { 0 };

	buf_puts(&safe, "");
	text_add_safe(&safe, text);
	pb_string(out, field, safe.data);
}

/* trace_processor complains of a system whose machine is not said: older files do not. */
static void add_utsname(struct buf *out, const struct run_info *run)
{
	size_t utsname;

	if (!run->machine)
		return;
	utsname = pb_begin(out, SYSTEM_UTSNAME);
	pb_string(out, UTSNAME_SYSNAME, "Linux");
	if (run->kernel_release)
		add_safe(out, UTSNAME_RELEASE, run->kernel_release);
	add_safe(out, UTSNAME_MACHINE, run->machine);
	pb_end(out, utsname);
}

static void add_system(struct buf *out, const struct run_info *run)
{
	size_t packet = packet_begin(out, SEQUENCE_NEEDS);
	size_t system = pb_begin(out, PACKET_SYSTEM_INFO);

	add_utsname(out, run);
	pb_string(out, SYSTEM_SERVICE_VERSION, "cuscope " CUSCOPE_VERSION);
	pb_end(out, system);
	pb_end(out, packet);
}

/* Something that is said of the whole trace: an instant on a track of its own. */
static struct open_event say(struct perfetto *p, uint64_t time_ns, const char *what)
{
	uint64_t track = perfetto_own_track(p->tracks);
	uint32_t category = perfetto_constant(p->names, NAME_CATEGORY, "cuscope");
	uint32_t name = perfetto_name(p->names, NAME_EVENT, what);
	struct open_event open;

	buf_reset(&p->packet);
	open = event_begin(&p->packet, time_ns, TYPE_INSTANT, track);
	event_add_name(&p->packet, category, name);
	return open;
}

static void said(struct perfetto *p, struct open_event open)
{
	event_end(&p->packet, open);
	buf_add(&p->sink.lines.pending, p->packet.data, p->packet.len);
}

static void say_where(struct perfetto *p, const struct run_info *run)
{
	const struct {
		const char *name, *value;
	} known[] = {
		{ "hostname", run->hostname },
		{ "kernel release", run->kernel_release },
		{ "driver version", run->driver_version },
		{ "command", run->command },
		{ "cuscope version", CUSCOPE_VERSION },
	};
	struct open_event open = say(p, run->begin_ns, "trace begins");

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (known[i].value)
			annotate_text(p, annotation(p, known[i].name), known[i].value);
	}
	said(p, open);
}

/* How whole stacks are. */
static void say_stacks(struct perfetto *p, const struct run_info *run)
{
	const struct stack_counts *counts = &p->sink.stacks;
	struct buf text = { 0 };
	struct open_event open;

	stack_counts_text(counts, &text);
	if (text.len) {
		open = say(p, run->end_ns, "stacks");
		annotate_text(p, annotation(p, "how whole"), text.data);
		annotate_u64(p, "whole", stack_counts_whole(counts));
		annotate_u64(p, "all", stack_counts_all(counts));
		said(p, open);
	}
	buf_free(&text);
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++) {
		uint64_t n = run->stacks.missed[i];

		if (!n)
			continue;
		open = say(p, run->end_ns, "missing in stacks");
		annotate_u64(p, "count", n);
		annotate_text(p, annotation(p, "reason"),
		              stacks_missed_text((enum stacks_missed)i, n));
		said(p, open);
	}
}

static void say_miss(struct perfetto *p, const struct run_info *run, const struct miss *miss)
{
	struct open_event open = say(p, run->end_ns, "missed");

	annotate_text(p, annotation(p, "kind"), missed_kind_key(miss->kind));
	if (miss->name)
		annotate_text(p, annotation(p, "function"), miss->name);
	if (miss->lib)
		annotate_text(p, annotation(p, "library"), miss->lib);
	if (miss->pid)
		annotate_u64(p, "pid", miss->pid);
	if (miss->why)
		annotate_text(p, annotation(p, "reason"), miss->why);
	said(p, open);
}

/* What is missing has to be seen by whoever looks at the picture only. */
static void say_losses(struct perfetto *p, const struct run_info *run)
{
	for (enum lost_reason reason = 0; reason < LOST_COUNT; reason++) {
		struct open_event open;

		if (!run->lost[reason])
			continue;
		open = say(p, run->end_ns, "lost");
		annotate_u64(p, "count", run->lost[reason]);
		annotate_text(p, annotation(p, "reason"), lost_reason_text(reason));
		said(p, open);
	}
	for (size_t i = 0; i < run->n_misses; i++)
		say_miss(p, run, &run->misses[i]);
	if (p->sink.unjoined) {
		struct open_event open = say(p, run->end_ns, "calls and their work not joined");

		annotate_u64(p, "count", p->sink.unjoined);
		said(p, open);
	}
	if (run->cut_short)
		said(p, say(p, run->end_ns, "the trace file was cut short"));
	if (run->output_full)
		said(p, say(p, run->end_ns, "the rest is left out: --max-size was reached"));
	if (run->damaged_chunks) {
		struct open_event open = say(p, run->end_ns, "the trace file is damaged");

		annotate_u64(p, "events left out", run->damaged_events);
		annotate_u64(p, "parts left out", run->damaged_chunks);
		said(p, open);
	}
	if (run->estimate_scale > 1) {
		struct open_event open = say(p, run->end_ns, "only windows of time were traced");

		annotate_double(p, annotation(p, "scale"), run->estimate_scale);
		said(p, open);
	}
	say_stacks(p, run);
	said(p, say(p, run->end_ns, "trace ends"));
}

void perfetto_run_begin(struct perfetto *p, const struct run_info *run)
{
	add_clocks(&p->sink, run);
	add_system(&p->sink.lines.pending, run);
	say_where(p, run);
}

void perfetto_run_end(struct perfetto *p, const struct run_info *run)
{
	say_losses(p, run);
}
