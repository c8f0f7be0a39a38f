// SPDX-License-Identifier: MIT
#include "report/gaps/gap_device.h"

#include <stdlib.h>

#include "base/xalloc.h"

#define ENDS         1024 /* that are remembered; a power of two */
#define NOT_MEASURED 1024 /* times without measuring that are remembered; a power of two */

#define DEFAULT_STREAM   7     /* CUPTI's number of a context's default stream */
#define RELEASE_NS       10000 /* from the end of what a stream waited for to its own next */
#define RELEASE_ERROR_NS 1000  /* by which the two can seem to overlap */

struct gap_recent_end {
	uint64_t end_ns;
	uint32_t process, context, stream;
	bool nonblocking; /* the stream is */
	enum activity_kind kind;
};

struct gap_device {
	struct gap_recent_end ends[ENDS];
	uint64_t n_ends; /* ever */
	struct {
		uint64_t begin_ns, end_ns;
	} not_measured[NOT_MEASURED];
	uint64_t n_not_measured; /* ever */
};

struct gap_device *gap_device_new(void)
{
	return xcalloc(1, sizeof(struct gap_device));
}

void gap_device_free(struct gap_device *device)
{
	free(device);
}

void gap_device_end(struct gap_device *device, const struct gap_work *work, bool nonblocking)
{
	device->ends[device->n_ends++ & (ENDS - 1)] = (struct gap_recent_end){
		.end_ns = work->end_ns,
		.process = work->process->id,
		.context = work->context,
		.stream = work->stream,
		.nonblocking = nonblocking,
		.kind = work->kind,
	};
}

static bool on_default_stream(const struct gap_recent_end *end, const struct gap_work *work)
{
	return end->process == work->process->id && end->context == work->context &&
	       (end->stream == DEFAULT_STREAM || work->stream == DEFAULT_STREAM);
}

/* The last end before `work` began. It is later than the stream's own, so of another stream. */
unsigned gap_device_release(const struct gap_device *device, const struct gap_work *work,
                            bool nonblocking, uint64_t begin_ns)
{
	uint64_t n = device->n_ends < ENDS ? device->n_ends : ENDS;

	for (uint64_t i = 1; i <= n; i++) {
		const struct gap_recent_end *end = &device->ends[(device->n_ends - i) & (ENDS - 1)];
		unsigned release = GAP_RELEASE_WORK;

		if (end->end_ns > work->begin_ns + RELEASE_ERROR_NS)
			continue;
		if (end->end_ns <= begin_ns || end->end_ns + RELEASE_NS < work->begin_ns)
			return 0;
		if (end->kind == ACTIVITY_COPY || end->kind == ACTIVITY_SET)
			release |= GAP_RELEASE_COPY;
		if (!end->nonblocking && !nonblocking && on_default_stream(end, work))
			release |= GAP_RELEASE_DEFAULT;
		return release;
	}
	return 0;
}

void gap_device_not_measured(struct gap_device *device, const struct range *range)
{
	uint64_t at = device->n_not_measured++ & (NOT_MEASURED - 1);

	device->not_measured[at].begin_ns = range->begin_ns;
	device->not_measured[at].end_ns = range->end_ns;
}

/* Those that come later end later: once one ends before the time begins, all before it do. */
bool gap_device_was_measured(const struct gap_device *device, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t n = device->n_not_measured < NOT_MEASURED ? device->n_not_measured : NOT_MEASURED;

	for (uint64_t i = 1; i <= n; i++) {
		uint64_t at = (device->n_not_measured - i) & (NOT_MEASURED - 1);

		if (device->not_measured[at].end_ns <= begin_ns)
			return true;
		if (device->not_measured[at].begin_ns < end_ns)
			return false;
	}
	return true;
}
