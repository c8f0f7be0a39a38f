// SPDX-License-Identifier: MIT
#include "analysis/machines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/collectives.h"
#include "analysis/gpu_ids.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "trace/objects.h"

#define FILES_BYTES (2 * OBJECTS_BYTES_MAX) /* of definitions of all files */
#define TIME_MAX    (1ull << 61)            /* no time of a recording is later, or ever was */
#define LINE_LEAST  30                      /* collectives, below which no drift is looked for */
#define LINE_BETTER 0.8                     /* of the error without: more, and there is none */
#define DRIFT_MOST  0.001                   /* clocks that are put right go 500 millionths wrong */
#define ERROR_SHARE 0.95

/* ---- reading --------------------------------------------------------------------------------- */

struct machines_reader {
	struct consumer consumer;
	struct collectives collectives;
	struct kernels_looked_at looked_at;
};

static bool reader_communicates(struct machines_reader *reader, const struct kernel *kernel)
{
	if (!kernel || kernel->id == UINT32_MAX)
		return false;
	return kernel_is_communication(&reader->looked_at, kernel);
}

static int reader_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct machines_reader *reader = (struct machines_reader *)self;

	(void)err;
	if (event->type == EVENT_CALL || event->type == EVENT_OTHER_CALL)
		collectives_event(&reader->collectives, event);
	else if (event->type == EVENT_ACTIVITY && event->activity->kind == ACTIVITY_KERNEL &&
	         reader_communicates(reader, event->activity->kernel))
		collectives_kernel(&reader->collectives, event);
	return 0;
}

static const struct consumer_ops reader_ops = { .event = reader_event };

static void reader_read(struct machines_reader *reader, struct trace_file *const *files, size_t n)
{
	struct objects_numbers numbers = { .bytes = FILES_BYTES / n };
	const struct trace_read_options options = { .numbers = &numbers };
	struct consumer *row[] = { &reader->consumer };
	struct run_info all = { 0 };

	if (numbers.bytes > OBJECTS_BYTES_MAX)
		numbers.bytes = OBJECTS_BYTES_MAX;
	for (size_t i = 0; i < n; i++) {
		const struct run_info *run = trace_run(files[i]);
		struct err err = { 0 };

		trace_read(files[i], &options, row, 1, &err);
		for (size_t k = 0; k < LOST_COUNT; k++)
			all.lost[k] += run->lost[k];
		all.damaged_chunks += run->damaged_chunks;
	}
	collectives_end(&reader->collectives, &all);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* When kernels of a collective ended on a machine, in the middle. */
struct machine_end {
	uint32_t collective, machine;
	uint64_t ns, person; /* whose collective it is */
};

struct machines_ends {
	struct machine_end *of; /* by collective: those that have several machines */
	size_t n;
};

ORDER_BY(compare_ns, uint64_t, ORDER_OF(*a, *b));

ORDER_BY(compare_real, double, ORDER_OF(*a, *b));

ORDER_BY(ends_by_machine, struct machine_end, UP(machine), UP(ns));

/* One row for each machine of those of a collective; none where it is of one machine alone. */
static size_t ends_fold(struct machine_end *rows, size_t n)
{
	size_t kept = 0;

	SORT(rows, n, ends_by_machine);
	for (size_t i = 0, of; i < n; i += of) {
		for (of = 1; i + of < n && rows[i + of].machine == rows[i].machine; of++)
			;
		rows[kept++] = rows[i + (of - 1) / 2];
	}
	return kept > 1 ? kept : 0;
}

static struct machines_ends ends_of(const struct machines *machines,
                                    const struct collectives *collectives)
{
	struct machines_ends ends = { xcalloc(collectives->n_calls + 1, sizeof(*ends.of)), 0 };

	for (uint32_t i = 0; i < collectives->n_all; i++) {
		const struct collective *one = &collectives->all[i];
		const struct collective_call *calls = &collectives->calls[one->first];
		size_t n = 0;

		for (uint32_t k = 0; collective_ends_together(one->kind) && k < one->n; k++) {
			uint32_t file = collectives->ranks[calls[k].rank].process->file;

			if (!calls[k].gpu_end_ns || calls[k].gpu_end_ns > TIME_MAX ||
			    machines->of_file[file] >= machines->n)
				continue;
			ends.of[ends.n + n++] =
				(struct machine_end){ i, machines->of_file[file],
				                      calls[k].gpu_end_ns,
				                      collectives->comms[one->comm].person };
		}
		ends.n += ends_fold(&ends.of[ends.n], n);
	}
	return ends;
}

static size_t ends_run(const struct machines_ends *ends, size_t first)
{
	size_t n = 1;

	while (first + n < ends->n && ends->of[first + n].collective == ends->of[first].collective)
		n++;
	return n;
}

/* ---- one clock by another -------------------------------------------------------------------- */

/* An end by the own clock, and how much later it is by the other. */
struct point {
	uint64_t own_ns;
	int64_t more_ns;
	uint64_t person;
};

/* By time, and the same by whose they are. Two arrays of so many values are for what is reckoned.
 */
struct points {
	struct point *of, *by_person;
	size_t n;
	double *values, *middles;
};

ORDER_BY(points_by_time, struct point, UP(own_ns), UP(more_ns), UP(person));
ORDER_BY(points_by_person, struct point, UP(person), UP(own_ns), UP(more_ns));

static double middle_of(double *values, size_t n)
{
	SORT(values, n, compare_real);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double point_x(const struct points *points, const struct point *point)
{
	return (double)(int64_t)(point->own_ns - points->of[0].own_ns);
}

static double point_y(const struct points *points, const struct point *point)
{
	return (double)(point->more_ns - points->of[0].more_ns);
}

/* Through the middles of the first and the last third: what is far away from all bends nothing. */
static double points_slope(const struct points *points)
{
	size_t third = points->n / 3;
	double x[2], y[2];

	for (size_t side = 0; side < 2; side++) {
		const struct point *first = &points->of[side ? points->n - third : 0];

		for (size_t i = 0; i < third; i++)
			points->values[i] = point_x(points, &first[i]);
		x[side] = middle_of(points->values, third);
		for (size_t i = 0; i < third; i++)
			points->values[i] = point_y(points, &first[i]);
		y[side] = middle_of(points->values, third);
	}
	return x[1] > x[0] ? (y[1] - y[0]) / (x[1] - x[0]) : 0;
}

static size_t persons_run(const struct points *points, size_t first)
{
	size_t n = 1;

	while (first + n < points->n &&
	       points->by_person[first + n].person == points->by_person[first].person)
		n++;
	return n;
}

/* What one person's ends, from the first on, are away from that; in `values`. */
static void points_away(const struct points *points, size_t first, size_t n, double slope,
                        double middle)
{
	for (size_t i = 0; i < n; i++) {
		const struct point *point = &points->by_person[first + i];

		points->values[i] =
			point_y(points, point) - slope * point_x(points, point) - middle;
	}
}

/*
 * What is added at the first point. *error: what 95 % of one's ends are away from that at most, for
 * most of those whose they are. Kernels end when their process's agent says so, however many there
 * are, so each person has one voice: one of three bends nothing, and of two who do not agree it is
 * not known who is right, which the error says.
 */
static double points_middle(const struct points *points, double slope, double *error)
{
	size_t persons = 0, at = 0;
	double middle;

	for (size_t first = 0, n; first < points->n; first += n) {
		n = persons_run(points, first);
		points_away(points, first, n, slope, 0);
		points->middles[persons++] = middle_of(points->values, n);
	}
	middle = middle_of(points->middles, persons);
	for (size_t first = 0, n; first < points->n; first += n) {
		n = persons_run(points, first);
		points_away(points, first, n, slope, middle);
		for (size_t i = 0; i < n; i++)
			points->values[i] = fabs(points->values[i]);
		qsort(points->values, n, sizeof(double), compare_real);
		points->middles[at++] = points->values[(size_t)ceil(ERROR_SHARE * (double)n) - 1];
	}
	qsort(points->middles, persons, sizeof(double), compare_real);
	*error = points->middles[persons / 2];
	return middle;
}

static void points_fit(struct points *points, struct together_clock *clock)
{
	size_t n = points->n;
	double error, error_line, slope = 0, middle;

	qsort(points->of, n, sizeof(struct point), points_by_time);
	memcpy(points->by_person, points->of, n * sizeof(struct point));
	qsort(points->by_person, n, sizeof(struct point), points_by_person);
	middle = points_middle(points, 0, &error);
	if (n >= LINE_LEAST)
		slope = points_slope(points);
	if (fabs(slope) <= DRIFT_MOST && fabs(slope) > 0) {
		double at = points_middle(points, slope, &error_line);

		if (error_line < LINE_BETTER * error) {
			middle = at;
			error = error_line;
			clock->map.drift = slope;
			clock->map.at_ns = points->of[0].own_ns;
		}
	}
	clock->map.offset_ns = points->of[0].more_ns + (int64_t)middle;
	clock->error_ns += (uint64_t)error + 1;
	clock->n = n;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The ends of a collective by the clock of those that are known, in the middle; 0: none is. */
static uint64_t known_end(const struct machines *machines, const bool *known,
                          const struct machine_end *row, size_t n, uint64_t *error_ns)
{
	uint64_t ns[TOGETHER_MAX];
	size_t of = 0;

	for (size_t i = 0; i < n; i++) {
		const struct together_clock *clock = &machines->of[row[i].machine].clock;

		if (!known[row[i].machine])
			continue;
		ns[of++] = clock_map_ns(&clock->map, row[i].ns);
		if (clock->error_ns > *error_ns)
			*error_ns = clock->error_ns;
	}
	SORT(ns, of, compare_ns);
	return of ? ns[(of - 1) / 2] : 0;
}

/* The one that has most ends in common with those that are known. */
static uint32_t most_common(const struct machines *machines, const struct machines_ends *ends,
                            const bool *known, size_t *most)
{
	size_t common[TOGETHER_MAX] = { 0 };
	uint32_t found = 0;

	for (size_t i = 0, n; i < ends->n; i += n) {
		bool any = false;

		n = ends_run(ends, i);
		for (size_t k = 0; k < n; k++)
			any |= known[ends->of[i + k].machine];
		for (size_t k = 0; any && k < n; k++)
			common[ends->of[i + k].machine]++;
	}
	*most = 0;
	for (uint32_t i = 0; i < machines->n; i++)
		if (!known[i] && common[i] > *most) {
			*most = common[i];
			found = i;
		}
	return found;
}

static void machine_align(struct machines *machines, const struct machines_ends *ends,
                          const bool *known, uint32_t number)
{
	struct together_clock *clock = &machines->of[number].clock;
	AT_END(at_end_free) struct point *of = xcalloc(2 * ends->n + 1, sizeof(*of));
	AT_END(at_end_free) double *values = xcalloc(2 * ends->n + 1, sizeof(*values));
	struct points points = { of, of + ends->n, 0, values, values + ends->n };
	uint64_t error_ns = 0;

	for (size_t i = 0, n; i < ends->n; i += n) {
		uint64_t own_ns = 0, known_ns;

		n = ends_run(ends, i);
		for (size_t k = 0; k < n; k++)
			if (ends->of[i + k].machine == number)
				own_ns = ends->of[i + k].ns;
		known_ns = own_ns ? known_end(machines, known, &ends->of[i], n, &error_ns) : 0;
		if (known_ns && known_ns <= TIME_MAX)
			of[points.n++] =
				(struct point){ own_ns, (int64_t)known_ns - (int64_t)own_ns,
				                ends->of[i].person };
	}
	clock->error_ns = error_ns;
	if (points.n)
		points_fit(&points, clock);
}

/* All that can be aligned with the first of them, directly or by others. */
static void machines_grow(struct machines *machines, const struct machines_ends *ends,
                          uint32_t first, bool *done)
{
	bool known[TOGETHER_MAX] = { false };
	uint32_t next = first;
	size_t most = MACHINES_LEAST;

	while (most >= MACHINES_LEAST) {
		if (next != first)
			machine_align(machines, ends, known, next);
		machines->of[next].clock.of = first;
		known[next] = done[next] = true;
		next = most_common(machines, ends, known, &most);
	}
}

/* What two machines have of each other. */
struct machines_shared {
	bool comms, claimed; /* claimed: of other users there, as far as ids say */
	size_t ends;
};

static struct machines_shared shared_of(const struct machines *machines, uint32_t number,
                                        const struct collectives *collectives,
                                        const struct machines_ends *ends)
{
	uint8_t *has = xcalloc(collectives->n_comms + 1, 1); /* 1: the first machine, 2: this one */
	struct machines_shared shared = { 0 };

	for (size_t i = 0; i < collectives->n_ranks; i++) {
		const struct collective_rank *rank = &collectives->ranks[i];
		uint32_t of = machines->of_file[rank->process->file];

		if (rank->comm != COLLECTIVES_NONE)
			has[rank->comm] |= of == number ? 2 : of == 0;
		if (rank->comm != COLLECTIVES_NONE && of == number)
			shared.claimed |= collectives->comms[rank->comm].claimed;
	}
	for (size_t i = 0; i < collectives->n_comms; i++)
		shared.comms |= has[i] == 3;
	free(has);
	for (size_t i = 0; i < ends->n; i++)
		shared.ends += ends->of[i].machine == number;
	return shared;
}

static enum machine_how how_of(const struct machines *machines, uint32_t number,
                               const struct collectives *collectives,
                               const struct machines_ends *ends)
{
	const struct machines_shared shared = shared_of(machines, number, collectives, ends);
	bool known = false;

	if (collectives->lost && !collectives->n_all)
		return MACHINE_LOST;
	for (size_t i = 0; i < collectives->n_ranks; i++)
		known |= machines->of_file[collectives->ranks[i].process->file] == number &&
		         collectives->ranks[i].comm != COLLECTIVES_NONE;
	if (!known)
		return MACHINE_NO_CALLS;
	if (!shared.comms)
		return shared.claimed ? MACHINE_OTHER_USER : MACHINE_OTHER_JOB;
	return shared.ends ? MACHINE_FEW : MACHINE_NO_GPU_TIMES;
}

/* Of each file its machine, by the boot that its clock is of. */
static void machines_find(struct machines *machines, struct trace_file *const *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *boot = trace_run(files[i])->boot;
		uint32_t at = 0;

		while (at < machines->n && (!boot || strcmp(machines->of[at].boot, boot) != 0))
			at++;
		machines->of_file[i] = at;
		if (at < machines->n || at == TOGETHER_MAX)
			continue;
		snprintf(machines->of[at].boot, sizeof(machines->of[at].boot), "%s",
		         boot ? boot : "");
		machines->of[at].clock = (struct together_clock){ .of = at, .machine = at };
		machines->n++;
	}
}

void machines_align(struct machines *machines, struct trace_file *const *files, size_t n)
{
	struct machines_reader reader = { .consumer = { &reader_ops } };
	bool done[TOGETHER_MAX] = { false };
	struct machines_ends ends;

	*machines = (struct machines){ .of_file = xcalloc(n + 1, sizeof(*machines->of_file)) };
	machines_find(machines, files, n);
	if (machines->n < 2)
		return;
	collectives_init(&reader.collectives);
	reader_read(&reader, files, n);
	ends = ends_of(machines, &reader.collectives);
	for (uint32_t i = 0; i < machines->n; i++)
		if (!done[i])
			machines_grow(machines, &ends, i, done);
	for (uint32_t i = 1; i < machines->n; i++)
		if (machines->of[i].clock.of)
			machines->of[i].how = how_of(machines, i, &reader.collectives, &ends);
	free(ends.of);
	free(reader.looked_at.by_id);
	collectives_clear(&reader.collectives);
}

void machines_clear(struct machines *machines)
{
	free(machines->of_file);
	*machines = (struct machines){ 0 };
}

const struct together_clock *machines_clock(const struct machines *machines, size_t file)
{
	uint32_t number = machines->of_file[file];

	return number < machines->n ? &machines->of[number].clock : NULL;
}

const char *machines_why(const struct machines *machines, size_t file)
{
	static const char *const why[] = {
		[MACHINE_ALIGNED] = "its times are of another clock",
		[MACHINE_NO_CALLS] = "its times are of another machine's clock, and it has no "
				     "collectives by which that "
				     "could be compared",
		[MACHINE_OTHER_JOB] =
			"it is of another run: none of its communicators is one there",
		[MACHINE_OTHER_USER] =
			"its communicators are other users' there, which anybody can say that "
			"his are; a container with a user namespace of its own is a user of one "
			"machine",
		[MACHINE_LOST] = "its times are of another machine's clock, which nothing can be "
				 "compared by, since calls "
				 "were lost",
		[MACHINE_NO_GPU_TIMES] = "how its machine's clock goes by the other is not known: "
					 "that needs GPU times of "
					 "common collectives (record --gpu)",
		[MACHINE_FEW] =
			"how its machine's clock goes by the other is not known: there are too "
			"few common collectives with GPU times",
	};

	uint32_t number = machines->of_file[file];
	const char *said = number < machines->n ? why[machines->of[number].how] : NULL;

	return said ? said : "there are more machines than are compared";
}
