// SPDX-License-Identifier: MIT
/*
 * The report `overlap`: how long each GPU was busy with computing, communication and copies, and
 * with several of them at once. It divides the time that the account of the GPU has, further than
 * that does: there each moment has one cause.
 */
#include <stdlib.h>

#include "account/answer.h"
#include "account/gpu_time.h"
#include "report/reports.h"
#include "report/why.h"

/* Sets of classes, as bits. */
enum {
	COMPUTE = 1 << FACT_KERNEL,
	COMMUNICATION = 1 << FACT_COMMUNICATION,
	COPIES = 1 << FACT_COPY,
};

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER },
	{ "Device", TABLE_NUMBER },
	{ "Time", TABLE_DURATION },
	{ "Nothing", TABLE_DURATION },
	{ "Compute", TABLE_DURATION },
	{ "Communication", TABLE_DURATION },
	{ "Copies+Sets", TABLE_DURATION },
	{ "Compute+Comm", TABLE_DURATION },
	{ "Compute+Copies", TABLE_DURATION },
	{ "Comm+Copies", TABLE_DURATION },
	{ "Comm Hidden", TABLE_PERCENT },
	{ "Copies Hidden", TABLE_PERCENT },
};

/* Of the sums by classes: in which one of `any` ran, and one of each of both. */
static uint64_t ran_any(const uint64_t *ns, unsigned any, unsigned both)
{
	uint64_t sum = 0;

	for (unsigned classes = 1; classes < 1 << FACT_CLASSES; classes++)
		if (classes & any && (!both || classes & both))
			sum += ns[classes];
	return sum;
}

static void write_gpu(struct table *table, const struct facts *facts, const struct gpu_time *gpu)
{
	const struct fact_work *first = &facts->works[gpu->first];
	uint64_t ns[1 << FACT_CLASSES] = { 0 }, time_ns = 0;
	struct measured part = measured_of_gpu(facts, first->process);

	part.end_ns = gpu->segments[0].begin_ns;
	while (measured_next(&part, gpu->segments[gpu->n - 1].end_ns))
		time_ns += part.end_ns - part.begin_ns;
	gpu_time_by_classes(facts, gpu, ns);
	TABLE_CELLS(table, first->process->pid, first->device, time_ns,
	            time_ns - ran_any(ns, ~0u, 0), ran_any(ns, COMPUTE, 0),
	            ran_any(ns, COMMUNICATION, 0), ran_any(ns, COPIES, 0),
	            ran_any(ns, COMPUTE, COMMUNICATION), ran_any(ns, COMPUTE, COPIES),
	            ran_any(ns, COMMUNICATION, COPIES));
	table_share(table, ran_any(ns, COMPUTE, COMMUNICATION), ran_any(ns, COMMUNICATION, 0));
	table_share(table, ran_any(ns, COPIES, COMPUTE | COMMUNICATION), ran_any(ns, COPIES, 0));
	table_end_row(table);
}

static void write_overlap(void *self, struct table *table, const struct run_info *run)
{
	struct report_writer *writer = self;
	const struct facts *facts = why_answer(writer->analysis)->facts;
	size_t n = 0;
	struct gpu_time *gpus = gpu_times_of(facts);

	for (uint32_t i = 0; i < facts->n_gpus; i++) {
		if (gpus[i].n)
			write_gpu(table, facts, &gpus[i]);
		n += gpus[i].n > 0;
	}
	if (!n)
		report_note_no_gpu_times(table, writer->options.part, run);
	else
		table_note(table, "Time: measured, from a GPU's first work on; Nothing: in which "
		                  "nothing ran; A+B: while both ran; Hidden: of the time of "
		                  "communication while something was computed, of copies and sets "
		                  "while a kernel ran");
	table_note_if(table, facts->left_out, "left out, for want of room: %lu events",
	              facts->left_out);
	report_note_gpu_lost(table, run);
}

const struct report_kind overlap_report = {
	.why = true,
	.metrics = true,
	.parts = { { "busy", NULL, TABLE_COLUMNS(columns), write_overlap } },
};
