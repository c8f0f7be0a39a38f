/* SPDX-License-Identifier: MIT */
/* Of gaps.c, which counts them, and gaps_rows.c, which hands out what it has. */
#ifndef CUSCOPE_REPORT_GAPS_GAPS_INSIDE_H
#define CUSCOPE_REPORT_GAPS_GAPS_INSIDE_H

#include "base/hash.h"
#include "report/gaps/gap_cover.h"
#include "report/gaps/gap_functions.h"
#include "report/gaps/gaps.h"
#include "table/longest.h"

struct gap_device;
struct gap_meanwhile;

enum gap_kind { KIND_DEVICE, KIND_PROCESS, KIND_STREAM, KIND_COUNT };

struct gaps_line_key {
	uint32_t kind, device, process, context, stream;
};

struct gaps_line {
	struct gap_line row; /* first: what callers see */
	struct gaps_line_key key;
	struct gap_cover cover;
	struct gaps_line *on, *of; /* a stream's device and its process on it */
	bool nonblocking;          /* a stream that does not wait for the default one */
	/* KIND_DEVICE only: */
	struct gap_device *device;
	struct gap_meanwhile *meanwhile;
	struct gap_functions functions[GAP_CAUSES];
	UT_hash_handle hh;
};

struct gaps {
	struct consumer consumer; /* first: what callers hold */
	struct gaps_options options;
	struct work *work;
	struct gap_calls *calls;
	struct gap_threads *threads;
	struct gaps_line *lines, *last; /* hash; last: the stream of the last activity */
	size_t n_lines[KIND_COUNT];
	const struct gap_line **rows[KIND_COUNT];
	struct longest of_devices, of_streams;
	uint64_t events, samples;
	bool finished;
	struct gaps_limits limits;
};

#endif
