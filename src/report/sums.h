/* SPDX-License-Identifier: MIT */
/*
 * Reports that sum things up by name: calls by function, kernels by name, copies by direction. They
 * are one consumer that is told by a row of a table what belongs together. The rows that come out
 * are printed as a report, or compared with those of another trace.
 */
#pragma once

#include "analysis/spread.h"
#include "report/report.h"

struct sums_row {
	char *name;           /* function, kernel or operation */
	const char *category; /* of cuda_gpu_sum, else NULL */
	const char *place;    /* of a kind by place: as analysis/place.h labels it; else NULL */
	uint32_t grid[3], block[3]; /* of cuda_gpu_kern_gb_sum, else zeros */
	uint64_t count;
	struct spread values; /* of those that have one: a call without an end has none */
};

struct sums_kind;

/* The kind of the report of that name, by place or not; NULL: it is no such report. */
const struct sums_kind *sums_kind(const char *report, bool by_place);

enum table_type sums_type(const struct sums_kind *kind); /* TABLE_DURATION or TABLE_MB */

/* The columns that name a row, how many they are, and its cells in them. */
#define SUMS_LABELS 3
size_t sums_labels(const struct sums_kind *kind, struct table_column into[SUMS_LABELS]);
void sums_add_labels(const struct sums_kind *kind, const struct sums_row *row, struct table *table);

/* A consumer without a table: for what looks at the rows afterwards. */
struct consumer *sums_new(const struct sums_kind *kind, enum kernel_names names, bool nested);

/* After its end, until it is freed: by total, the largest first. */
struct sums_row *sums_rows(struct consumer *consumer, size_t *n);

/* Whether anything of the kind could be seen: false for GPU times that were not recorded. */
bool sums_has_source(struct consumer *consumer);

/* The order of two rows by what names them: 0 where they belong together. */
int sums_compare_labels(const struct sums_row *a, const struct sums_row *b);
