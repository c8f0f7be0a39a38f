/* SPDX-License-Identifier: MIT */
/*
 * Metrics of one moment, and their exposition: OpenMetrics 1.0 or Prometheus' text format 0.0.4.
 *
 *   metrics_new, then for each family metrics_family and its values; metrics_write as often as is
 *   asked for
 *
 * Values stay as they were put in: who writes them out on another thread needs no lock. All values
 * of a family come one after the other, as both formats want them.
 */
#ifndef CUSCOPE_NODE_METRICS_H
#define CUSCOPE_NODE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "node/counts.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_INFO };

struct metric_family {
	const char *name; /* without "_total" and "_info", which the exposition adds */
	enum metric_type type;
	const char *unit; /* the name ends in it: "bytes", "seconds"; NULL: none */
	const char *help; /* one sentence */
};

struct metrics;

/* Labels of a value, as text; 0: none. They go with the metrics that made them. */
typedef uint32_t metric_labels;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* What is added from now on is of this family, which has to outlive the metrics. */
void metrics_family(struct metrics *metrics, const struct metric_family *family);

/*
 * The labels `base`, and behind them pairs of name and value up to a NULL. Names are ours. Values
 * may be anybody's: what is no UTF-8, or could be obeyed by a terminal, becomes U+FFFD, and what is
 * longer than 256 bytes is cut. An empty value is no label.
 */
metric_labels metrics_labels(struct metrics *metrics, metric_labels base, ...)
	__attribute__((sentinel));

/* value / 10^decimals. `created_ns`: since when a counter counts, CLOCK_REALTIME; 0: not told. */
void metrics_add(struct metrics *metrics, metric_labels labels, uint64_t value, unsigned decimals,
                 uint64_t created_ns);

/* A family of one value, without labels. */
void metrics_one(struct metrics *metrics, const struct metric_family *family, uint64_t value,
                 unsigned decimals, uint64_t created_ns);

/* A value of the family that one label tells apart. */
void metrics_add_of(struct metrics *metrics, const char *label, const char *word, uint64_t value,
                    uint64_t created_ns);

/* A gauge with a fraction, or below 0. */
void metrics_add_real(struct metrics *metrics, metric_labels labels, double value);

enum metrics_format { METRICS_TEXT, METRICS_OPENMETRICS, METRICS_FORMATS };

const char *metrics_content_type(enum metrics_format format);

/* The format that a client asks for by its Accept header; NULL: it sent none. */
enum metrics_format metrics_accepted(const char *accept);

/* The same without its end: what comes before that of others. */
void metrics_write_part(const struct metrics *metrics, enum metrics_format format, struct buf *out);
void metrics_write(const struct metrics *metrics, enum metrics_format format, struct buf *out);

/* ---- count families ------------------------------------------------------------------------ */

/* The metrics that are counts: of the machine, and of a process under a name of its own. */

struct count_family {
	struct metric_family machine, process; /* machine.name NULL: another source has it */
	enum count first;
	size_t n;                          /* places from there; 1: no label */
	const char *label;                 /* that tells them apart */
	const char *(*word)(size_t place); /* NULL: there is no such place */
	unsigned decimals;
};

/* A value for each place that has a word, with the labels `base` and its own. Those of 0 are left
 * out, but with `zeroes` only that of no kind or direction. */
void metrics_add_counts(struct metrics *metrics, const struct count_family *family,
                        const uint64_t *counts, metric_labels base, bool zeroes,
                        uint64_t created_ns);

extern const struct count_family count_families[];
extern const size_t n_count_families;

const char *count_kind(size_t kind);

#endif
