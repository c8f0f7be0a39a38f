// SPDX-License-Identifier: MIT
#include "node/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/xalloc.h"

/* ---- count families ------------------------------------------------------------------------ */

#define FAMILY(name_, unit_, help_)                                                                \
	{ "cuscope_" name_, METRIC_COUNTER, unit_, help_ ", of all processes" },                   \
	{                                                                                          \
		"cuscope_process_" name_, METRIC_COUNTER, unit_, help_ ", by process"              \
	}

static const char *count_direction(size_t direction)
{
	return direction ? api_direction_name((enum api_direction)direction) : "unknown";
}

const char *count_kind(size_t kind)
{
	return kind ? api_memory_name((enum api_memory)kind) : NULL;
}

const struct count_family count_families[] = {
	{ FAMILY("launches", NULL, "Kernels launched"), COUNT_LAUNCHES, 1 },
	{ FAMILY("launch_seconds", "seconds", "Time in the calls that launch kernels and graphs"),
	  COUNT_LAUNCH_NS, 1, .decimals = 9 },
	{ FAMILY("graph_launches", NULL, "Graphs launched"), COUNT_GRAPH_LAUNCHES, 1 },
	{ FAMILY("copies", NULL, "Copies asked for"), COUNT_COPIES, DIRECTION_COUNT, "direction",
	  count_direction },
	{ FAMILY("copy_bytes", "bytes", "Bytes of copies"), COUNT_COPY_BYTES, DIRECTION_COUNT,
	  "direction", count_direction },
	{ FAMILY("copy_seconds", "seconds", "Time in the calls that copy"), COUNT_COPY_NS,
	  DIRECTION_COUNT, "direction", count_direction, 9 },
	{ FAMILY("sets", NULL, "Memory sets asked for"), COUNT_SETS, 1 },
	{ FAMILY("set_bytes", "bytes", "Bytes of memory sets"), COUNT_SET_BYTES, 1 },
	{ FAMILY("allocations", NULL, "Allocations that succeeded"), COUNT_ALLOCATIONS,
	  MEMORY_COUNT, "kind", count_kind },
	{ FAMILY("allocated_bytes", "bytes", "Bytes of allocations that succeeded"),
	  COUNT_ALLOCATED_BYTES, MEMORY_COUNT, "kind", count_kind },
	{ FAMILY("syncs", NULL, "Waits for the GPU"), COUNT_SYNCS, 1 },
	{ FAMILY("sync_seconds", "seconds", "Time in calls that wait for the GPU"), COUNT_SYNC_NS,
	  1, .decimals = 9 },
	{ FAMILY("frees", NULL, "Allocations that a call freed"), COUNT_FREES, MEMORY_COUNT, "kind",
	  count_kind },
	{ { NULL },
	  { "cuscope_process_errors", METRIC_COUNTER, NULL, "Calls that failed, by process" },
	  COUNT_ERRORS,
	  1 },
};
const size_t n_count_families = ARRAY_SIZE(count_families);

void metrics_add_counts(struct metrics *metrics, const struct count_family *family,
                        const uint64_t *counts, metric_labels base, bool zeroes,
                        uint64_t created_ns)
{
	for (size_t i = 0; i < family->n; i++) {
		const char *word = family->word ? family->word(i) : NULL;
		uint64_t count = counts[family->first + i];
		metric_labels labels = base;

		if ((family->word && !word) || (!count && (!zeroes || (family->word && !i))))
			continue;
		if (word)
			labels = metrics_labels(metrics, base, family->label, word, NULL);
		metrics_add(metrics, labels, count, family->decimals, created_ns);
	}
}

/* ---- metrics ------------------------------------------------------------------------------- */

#define LABEL_BYTES  256 /* of a value, before it is escaped */
#define PLACES_FIRST 64
#define REAL         255 /* instead of decimals: the value is a double */

struct value {
	metric_labels labels;
	uint8_t decimals;
	union {
		uint64_t whole;
		double real;
	};
	uint64_t created_ns;
};

struct run { /* the values of one family */
	const struct metric_family *family;
	size_t first, count;
};

/* Where a value of the family that is being filled stands; of another run it is empty. */
struct place {
	uint32_t run, value;
};

struct metrics {
	struct buf labels; /* one text after the other, each with its NUL; the first is empty */
	struct value *values;
	size_t count;
	struct run *runs;
	size_t n_runs;
	struct place *places; /* a power of two, by the labels' hash */
	size_t n_places;
};

struct metrics *metrics_new(void)
{
	struct metrics *metrics = xcalloc(1, sizeof(*metrics));

	buf_add(&metrics->labels, "", 1);
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	buf_free(&metrics->labels);
	FREE_ALL(metrics->values, metrics->runs, metrics->places, metrics);
}

void metrics_family(struct metrics *metrics, const struct metric_family *family)
{
	*VEC_ADD(metrics->runs, metrics->n_runs) = (struct run){ family, metrics->count, 0 };
}

/* ---- labels -------------------------------------------------------------------------------- */

static void add_escaped(struct buf *out, const char *text)
{
	const char *end = text + strnlen(text, LABEL_BYTES);

	while (text < end) {
		unsigned code = 0;
		size_t bytes = text_utf8(text, &code);

		if (bytes && text + bytes > end)
			return;
		if (*text == '\n')
			buf_puts(out, "\\n");
		else if (*text == '"' || *text == '\\')
			buf_printf(out, "\\%c", *text);
		else if (!bytes || text_is_hostile(code))
			buf_puts(out, "\xef\xbf\xbd");
		else
			buf_add(out, text, bytes);
		text += bytes ? bytes : 1;
	}
}

metric_labels metrics_labels(struct metrics *metrics, metric_labels base, ...)
{
	struct buf *labels = &metrics->labels;
	size_t at = labels->len, base_bytes = strlen(labels->data + base);
	const char *name, *value;
	va_list ap;

	buf_reserve(labels, base_bytes + 1); /* it may move, and the base with it */
	buf_add(labels, labels->data + base, base_bytes);
	va_start(ap, base);
	while ((name = va_arg(ap, const char *))) {
		value = va_arg(ap, const char *);
		if (!value || !*value)
			continue;
		buf_printf(labels, "%s%s=\"", labels->len > at ? "," : "", name);
		add_escaped(labels, value);
		buf_putc(labels, '"');
	}
	va_end(ap);
	buf_add(labels, "", 1);
	return (metric_labels)at;
}

/* ---- values -------------------------------------------------------------------------------- */

/* The place of these labels in the family that is being filled, or where it would be. */
static struct place *place_of(const struct metrics *metrics, const char *labels)
{
	size_t at = hash_bytes(labels, strlen(labels));

	for (;; at++) {
		struct place *place = &metrics->places[at & (metrics->n_places - 1)];

		if (place->run != metrics->n_runs ||
		    !strcmp(labels, metrics->labels.data + metrics->values[place->value].labels))
			return place;
	}
}

static void make_places(struct metrics *metrics, const struct run *run)
{
	free(metrics->places);
	metrics->n_places = metrics->n_places ? 2 * metrics->n_places : PLACES_FIRST;
	metrics->places = xcalloc(metrics->n_places, sizeof(*metrics->places));
	for (size_t i = run->first; i < run->first + run->count; i++)
		*place_of(metrics, metrics->labels.data + metrics->values[i].labels) =
			(struct place){ (uint32_t)metrics->n_runs, (uint32_t)i };
}

/*
 * A series that is there twice is none that anybody reads, and what labels tell apart is the word
 * of processes, of which hostile letters are made alike: so the second one is the first.
 */
static struct value *value_of(struct metrics *metrics, metric_labels labels)
{
	struct run *run = &metrics->runs[metrics->n_runs - 1];
	struct place *place;

	if (2 * run->count >= metrics->n_places)
		make_places(metrics, run);
	place = place_of(metrics, metrics->labels.data + labels);
	if (place->run == metrics->n_runs)
		return &metrics->values[place->value];
	*place = (struct place){ (uint32_t)metrics->n_runs, (uint32_t)metrics->count };
	metrics->values = vec_room(metrics->values, metrics->count, sizeof(*metrics->values));
	run->count++;
	metrics->values[metrics->count] = (struct value){ .labels = labels };
	return &metrics->values[metrics->count++];
}

void metrics_add(struct metrics *metrics, metric_labels labels, uint64_t whole, unsigned decimals,
                 uint64_t created_ns)
{
	struct value *value = value_of(metrics, labels);
	bool info = metrics->runs[metrics->n_runs - 1].family->type == METRIC_INFO;

	value->whole = info ? whole : value->whole + whole;
	value->decimals = (uint8_t)decimals;
	value->created_ns = created_ns;
}

void metrics_one(struct metrics *metrics, const struct metric_family *family, uint64_t value,
                 unsigned decimals, uint64_t created_ns)
{
	metrics_family(metrics, family);
	metrics_add(metrics, 0, value, decimals, created_ns);
}

void metrics_add_of(struct metrics *metrics, const char *label, const char *word, uint64_t value,
                    uint64_t created_ns)
{
	metrics_add(metrics, metrics_labels(metrics, 0, label, word, NULL), value, 0, created_ns);
}

void metrics_add_real(struct metrics *metrics, metric_labels labels, double real)
{
	struct value *value = value_of(metrics, labels);

	value->real += real;
	value->decimals = REAL;
}

/* ---- exposition ---------------------------------------------------------------------------- */

const char *metrics_content_type(enum metrics_format format)
{
	return format == METRICS_OPENMETRICS
	               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
	               : "text/plain; version=0.0.4; charset=utf-8";
}

/* Prometheus names OpenMetrics first where it wants it; who sends q=0 does not. */
enum metrics_format metrics_accepted(const char *accept)
{
	const char *at = accept ? strcasestr(accept, "application/openmetrics-text") : NULL;
	const char *end = at ? at + strcspn(at, ",") : NULL, *q;

	if (!at)
		return METRICS_TEXT;
	q = strcasestr(at, "q=");
	return q && q < end && strtod(q + 2, NULL) <= 0 ? METRICS_TEXT : METRICS_OPENMETRICS;
}

static const char *ending(const struct metric_family *family)
{
	return family->type == METRIC_COUNTER ? "_total"
	       : family->type == METRIC_INFO  ? "_info"
	                                      : "";
}

static void add_help(struct buf *out, const char *help)
{
	for (; *help; help++) {
		if (*help == '\n' || *help == '\\')
			buf_puts(out, *help == '\n' ? "\\n" : "\\\\");
		else
			buf_putc(out, *help);
	}
	buf_putc(out, '\n');
}

static void write_head(const struct metric_family *family, bool open, struct buf *out)
{
	static const char *const types[] = { "counter", "gauge", "info" };
	const char *type = types[family->type], *end = open ? "" : ending(family);

	if (!open && family->type == METRIC_INFO)
		type = "gauge";
	buf_printf(out, "# TYPE %s%s %s\n", family->name, end, type);
	if (open && family->unit)
		buf_printf(out, "# UNIT %s %s\n", family->name, family->unit);
	buf_printf(out, "# HELP %s%s ", family->name, end);
	add_help(out, family->help);
}

static void write_number(const struct value *value, struct buf *out)
{
	if (value->decimals != REAL)
		buf_fixed(out, value->whole, value->decimals);
	else if (isfinite(value->real))
		buf_printf(out, "%.15g", value->real);
	else
		buf_puts(out, isnan(value->real) ? "NaN" : value->real > 0 ? "+Inf" : "-Inf");
	buf_putc(out, '\n');
}

static void write_name(const struct metrics *metrics, const struct metric_family *family,
                       const char *end, const struct value *value, struct buf *out)
{
	const char *labels = metrics->labels.data + value->labels;

	buf_puts(out, family->name);
	buf_puts(out, end);
	if (*labels) {
		buf_putc(out, '{');
		buf_puts(out, labels);
		buf_putc(out, '}');
	}
	buf_putc(out, ' ');
}

static void write_run(const struct metrics *metrics, const struct run *run, bool open,
                      struct buf *out)
{
	if (!run->count)
		return;
	write_head(run->family, open, out);
	for (size_t i = run->first; i < run->first + run->count; i++) {
		const struct value *value = &metrics->values[i];

		write_name(metrics, run->family, ending(run->family), value, out);
		write_number(value, out);
		if (!open || !value->created_ns || run->family->type != METRIC_COUNTER)
			continue;
		write_name(metrics, run->family, "_created", value, out);
		buf_fixed(out, value->created_ns / 1000000, 3);
		buf_putc(out, '\n');
	}
}

void metrics_write_part(const struct metrics *metrics, enum metrics_format format, struct buf *out)
{
	for (size_t i = 0; i < metrics->n_runs; i++)
		write_run(metrics, &metrics->runs[i], format == METRICS_OPENMETRICS, out);
}

void metrics_write(const struct metrics *metrics, enum metrics_format format, struct buf *out)
{
	metrics_write_part(metrics, format, out);
	if (format == METRICS_OPENMETRICS)
		buf_puts(out, "# EOF\n");
}
