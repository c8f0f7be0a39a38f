// SPDX-License-Identifier: MIT
/* What a Chrome trace says of itself, before its events and behind them. */
#include "output/chrome/chrome.h"

#include <inttypes.h>

#include "analysis/missed.h"
#include "base/array.h"
#include "base/json.h"
#include "output/format.h"

/*
 * Times are relative to a base, since microseconds since 1970 with nanoseconds behind the point are
 * more than a double holds. As in Kineto it is a round date, so that files of several ranks, begun
 * at different times, have the same: HTA compares their times without looking at it.
 */
#define BASE_STEP_NS (90ull * 24 * 3600 * 1000000000)

/*
 * HTA finds a file's rank by a pattern that wants a blank after the colon, and takes the first that
 * it meets: so this stands at the top, on a line of its own.
 */
void chrome_run_begin(struct chrome_writer *writer, const struct sink_options *options,
                      const struct run_info *run)
{
	struct buf *out = writer->out;
	uint64_t real_ns = run->begin_ns + (uint64_t)run->realtime_offset_ns;
	uint64_t base_ns = real_ns - real_ns % BASE_STEP_NS;

	writer->base_ns = base_ns - (uint64_t)run->realtime_offset_ns;
	buf_puts(out, "{\n  \"schemaVersion\": 1,\n");
	buf_printf(out,
	           "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %u, "
	           "\"world_size\": %u},\n",
	           options->rank, options->world_size ? options->world_size : options->rank + 1);
	buf_printf(out, "  \"trace_id\": \"%016" PRIX64 "%016" PRIX64 "\",\n", real_ns,
	           run->begin_ns);
	buf_puts(out, "  \"displayTimeUnit\": \"ms\",\n");
	buf_printf(out, "  \"baseTimeNanoseconds\": %" PRIu64 ",\n", base_ns);
	buf_puts(out, "  \"traceEvents\": [\n");
}

/* Devices only by their numbers: which of the machine's GPUs a program's number is, is
 * not known. */
static void add_devices(struct buf *out, const struct chrome_rows *rows)
{
	size_t n;
	const uint32_t *devices = chrome_rows_devices(rows, &n);

	if (!n)
		return;
	buf_puts(out, "  \"deviceProperties\": [");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s{\"id\": %u}", i ? ", " : "", devices[i]);
	buf_puts(out, "],\n");
}

static void add_who(struct json *json, const struct chrome_rows *rows, const struct run_info *run)
{
	const struct run_identity *identity;
	bool any = false;
	size_t at = 0;

	while ((identity = who_next(chrome_rows_who(rows), run, &at))) {
		if (!any)
			json_open(json, "processes", '[');
		any = true;
		json_open(json, NULL, '{');
		who_json(identity, json);
		json_close(json, '}');
	}
	if (any)
		json_close(json, ']');
}

static void add_run(struct buf *out, const struct run_info *run, const struct sink *sink,
                    const struct chrome_rows *rows, uint64_t stacks_left_out)
{
	const struct {
		const char *key, *value;
	} known[] = {
		{ "hostname", run->hostname },
		{ "kernel_release", run->kernel_release },
		{ "driver_version", run->driver_version },
		{ "command", run->command },
	};
	struct json json = { .out = out, .depth = 1, .comma = false };
	struct buf file = { 0 };

	buf_puts(out, "  \"cuscope\": {");
	json_string(&json, "version", CUSCOPE_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (known[i].value)
			json_string(&json, known[i].key, known[i].value);
	}
	if (sink->unjoined)
		json_u64(&json, "not_joined", sink->unjoined);
	if (stacks_left_out)
		json_u64(&json, "stacks_left_out", stacks_left_out);
	add_who(&json, rows, run);
	missed_json_and_stacks(&json, run, &sink->stacks);
	if (missed_of_file(run, &file))
		json_string(&json, "incomplete", file.data);
	buf_free(&file);
	buf_puts(out, "},\n");
}

void chrome_run_end(struct chrome_writer *writer, const struct chrome_rows *rows,
                    struct chrome_stacks *stacks, struct sink *sink, const struct run_info *run)
{
	struct buf *out = writer->out;

	chrome_begin_event(writer);
	buf_puts(out, "\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", "
	              "\"pid\": \"\", \"tid\": \"\", \"ts\": ");
	chrome_add_time(writer, run->end_ns);
	buf_puts(out, "}\n  ],\n");
	add_devices(out, rows);
	chrome_add_stacks(stacks, sink);
	add_run(out, run, sink, rows, chrome_stacks_left_out(stacks));
	buf_puts(out, "  \"traceName\": ");
	buf_json_string(out, sink->options.path ? sink->options.path : "");
	buf_puts(out, "\n}\n");
}
