/* SPDX-License-Identifier: MIT */
/*
 * What becomes rows of a page's tracks: events (rows.c), the account of time (rows_account.c); and
 * what the index says of those that they are of, with the stacks that they have (rows_index.c).
 * Private to these.
 */
#ifndef CUSCOPE_PAGE_ROWS_H
#define CUSCOPE_PAGE_ROWS_H

#include "page/page.h"

struct page_process {
	bool met;
	uint32_t pid;
	uint64_t begin_ns;
	char comm[16];
};

struct page_rows {
	struct page_blocks *blocks;
	const struct sink *sink;
	struct page_thread *threads;
	struct page_stream *streams;
	struct page_memory *memories;
	struct page_track *metrics[RUN_GPUS_MAX][GPU_METRICS_DRAWN];
	struct page_process *processes; /* by id */
	size_t n_processes;
	uint32_t *functions, *kernels; /* their names' numbers and 1, by id */
	size_t n_functions, n_kernels;
	const struct stack **stacks; /* that rows have, by id */
	size_t n_stacks;
	const struct stack_frame **frames;
	size_t n_frames;
	struct buf stack_blocks, frame_blocks; /* JSON */
	struct memory *memory;
	struct buf text;
	struct description description;
};

/* Between these, since the trace's begin. */
void rows_place(const struct page_rows *rows, uint64_t *row, uint64_t begin_ns, uint64_t end_ns);

/* The number of a name, made safe. */
uint32_t rows_name(struct page_rows *rows, const char *text);

#endif
