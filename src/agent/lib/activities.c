// SPDX-License-Identifier: MIT
#include "agent/lib/activities.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "agent/lib/clock.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/intern.h"
#include "agent/lib/writer.h"
#include "base/array.h"

/* ---- buffers ------------------------------------------------------------------------------- */

/* A kernel's record has 216 bytes at most: 1200 to a large buffer, 150 to a small one. */
#define LARGE       32
#define LARGE_BYTES ((size_t)256 << 10)
#define SMALL       256
#define SMALL_BYTES ((size_t)32 << 10)
#define BUFFERS     (LARGE + SMALL)
#define LARGE_ALL   (LARGE * LARGE_BYTES)
#define SCRAP_AT    (LARGE_ALL + SMALL * SMALL_BYTES)
#define ALL_BYTES   (SCRAP_AT + SMALL_BYTES)

/* Those of one size, by number; the large ones have the first. */
struct buffers_pool {
	uint16_t free_ones[SMALL];
	size_t n_free;
};

static pthread_mutex_t buffers_lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *buffers_memory; /* NULL: not open */
static struct buffers_pool buffers_large, buffers_small;
static bool is_free[BUFFERS];

static void buffers_fill(struct buffers_pool *pool, size_t first, size_t n)
{
	for (pool->n_free = 0; pool->n_free < n; pool->n_free++) {
		pool->free_ones[pool->n_free] = (uint16_t)(first + n - 1 - pool->n_free);
		is_free[pool->free_ones[pool->n_free]] = true;
	}
}

int buffers_open(void)
{
	void *mapped;

	if (buffers_memory)
		return 0;
	mapped = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
	              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	madvise(mapped, ALL_BYTES, MADV_DONTFORK);
	pthread_mutex_lock(&buffers_lock);
	buffers_memory = mapped;
	buffers_fill(&buffers_large, 0, LARGE);
	buffers_fill(&buffers_small, LARGE, SMALL);
	pthread_mutex_unlock(&buffers_lock);
	return 0;
}

void buffers_close(void)
{
	pthread_mutex_lock(&buffers_lock);
	if (buffers_memory)
		munmap(buffers_memory, ALL_BYTES);
	buffers_memory = NULL;
	buffers_large.n_free = buffers_small.n_free = 0;
	pthread_mutex_unlock(&buffers_lock);
}

uint8_t *buffers_take(size_t *bytes, bool scrap)
{
	struct buffers_pool *pool = &buffers_large;
	uint8_t *buffer = NULL;

	*bytes = 0;
	pthread_mutex_lock(&buffers_lock);
	if (!pool->n_free)
		pool = &buffers_small;
	if (pool->n_free) {
		size_t which = pool->free_ones[--pool->n_free];

		is_free[which] = false;
		*bytes = which < LARGE ? LARGE_BYTES : SMALL_BYTES;
		buffer = buffers_memory + (which < LARGE
		                                   ? which * LARGE_BYTES
		                                   : LARGE_ALL + (which - LARGE) * SMALL_BYTES);
	} else if (buffers_memory && scrap) {
		*bytes = SMALL_BYTES;
		buffer = buffers_memory + SCRAP_AT;
	}
	pthread_mutex_unlock(&buffers_lock);
	return buffer;
}

bool buffers_is_scrap(const uint8_t *buffer)
{
	bool scrap;

	pthread_mutex_lock(&buffers_lock);
	scrap = buffers_memory && buffer == buffers_memory + SCRAP_AT;
	pthread_mutex_unlock(&buffers_lock);
	return scrap;
}

void buffers_return(uint8_t *buffer)
{
	pthread_mutex_lock(&buffers_lock);
	if (buffers_memory && buffer >= buffers_memory) {
		size_t at = (size_t)(buffer - buffers_memory);
		size_t which =
			at < LARGE_ALL ? at / LARGE_BYTES : LARGE + (at - LARGE_ALL) / SMALL_BYTES;
		struct buffers_pool *pool = which < LARGE ? &buffers_large : &buffers_small;

		if (which < BUFFERS && !is_free[which]) {
			is_free[which] = true;
			pool->free_ones[pool->n_free++] = (uint16_t)which;
		}
	}
	pthread_mutex_unlock(&buffers_lock);
}

void buffers_forked(void)
{
	buffers_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	buffers_memory = NULL;
	buffers_large.n_free = buffers_small.n_free = 0;
}

/* ---- activities ---------------------------------------------------------------------------- */

/* CUPTI interpolates between the GPU's clock and ours: a time may be a little ahead of now. */
#define AHEAD_NS 1000000u

/* Of one buffer. */
struct batch {
	struct ring *ring;
	struct agent_shared *shared;
	uint64_t now_ns;
	uint64_t possible_ns; /* earlier ones are impossible */
	uint64_t since_ns;    /* earlier ones are nobody's */
	uint64_t until_ns; /* so are later ones, and unfinished ones are to be expected; 0: none */
	uint64_t written, impossible, unknown, full;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct intern *intern; /* NULL: closed */
static uint32_t wanted, version;
static uint64_t clock_error;
static uint64_t enabled_since; /* ns; kinds were, a little before calls are told of */

int activities_open(void)
{
	struct intern *fresh = intern_new(writer_name_number);

	if (!fresh)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	intern_free(intern);
	intern = fresh;
	pthread_mutex_unlock(&lock);
	return 0;
}

void activities_close(void)
{
	pthread_mutex_lock(&lock);
	intern_free(intern);
	intern = NULL;
	pthread_mutex_unlock(&lock);
}

void activities_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	intern_free(intern); /* the child's copy */
	intern = NULL;
}

void activities_configure(uint32_t kinds, uint32_t cupti_version, uint64_t enabled_ns)
{
	pthread_mutex_lock(&lock);
	wanted = kinds;
	version = cupti_version;
	enabled_since = enabled_ns;
	pthread_mutex_unlock(&lock);
}

void activities_clock_error(uint64_t ns)
{
	pthread_mutex_lock(&lock);
	clock_error = ns;
	pthread_mutex_unlock(&lock);
}

/* ---- records ------------------------------------------------------------------------------- */

/* Into our clock; false: they cannot be right, or nobody measured any more. A record that was
 * flushed unfinished has none. */
static bool take_times(struct batch *batch, uint64_t *begin, uint64_t *end)
{
	*begin = clock_converted(*begin);
	*end = clock_converted(*end);
	if (batch->until_ns && (!*end || *begin > batch->until_ns))
		return false;
	if (*begin && *begin <= *end && *begin >= batch->possible_ns && *end <= batch->now_ns)
		return *begin >= batch->since_ns;
	batch->impossible++;
	return false;
}

static void put(struct batch *batch, const struct agent_head *record)
{
	if (ring_try(batch->ring, record))
		batch->written++;
	else
		batch->full++;
}

static uint32_t graph_of(uint32_t graph)
{
	return version >= CUPTI_VERSION_GRAPH_ID ? graph : 0;
}

static void take_kernel(struct batch *batch, const void *from)
{
	const struct cupti_kernel *kernel = from;
	uint64_t begin = kernel->start, end = kernel->end;
	struct agent_kernel_long record = {
		.kernel.head = { .bytes = sizeof(record.kernel), .type = AGENT_KERNEL },
		.kernel.correlation = kernel->correlation,
	};

	if (!take_times(batch, &begin, &end))
		return;
	record.kernel.begin_ns = begin;
	record.kernel.shape = intern_shape(intern, batch->ring, kernel);
	record.kernel.head.lane =
		intern_lane(intern, batch->ring, kernel->device, kernel->context, kernel->stream);
	if (!record.kernel.shape || !record.kernel.head.lane) {
		batch->full++;
		return;
	}
	if (kernel->graph_node || end - begin > UINT32_MAX) {
		record.kernel.head.bytes = sizeof(record);
		record.kernel.head.flags = AGENT_KERNEL_LONG;
		record.end_ns = end;
		record.graph_node = kernel->graph_node;
		record.graph = graph_of(kernel->graph);
	} else {
		record.kernel.duration_ns = (uint32_t)(end - begin);
	}
	put(batch, &record.kernel.head);
}

/* Fills in times and lane, and writes it. */
static void put_copy(struct batch *batch, struct agent_copy *record, uint32_t device,
                     uint32_t context, uint32_t stream)
{
	if (!take_times(batch, &record->begin_ns, &record->end_ns))
		return;
	record->head.bytes = sizeof(*record);
	record->head.lane = intern_lane(intern, batch->ring, device, context, stream);
	if (record->head.lane)
		put(batch, &record->head);
	else
		batch->full++;
}

static void take_copy(struct batch *batch, const void *from)
{
	const struct cupti_memcpy *copy = from;
	struct agent_copy record = {
		.head.type = AGENT_COPY,
		.begin_ns = copy->start,
		.end_ns = copy->end,
		.bytes = copy->bytes,
		.graph_node = copy->graph_node,
		.correlation = copy->correlation,
		.kind = copy->copy_kind,
		.source = copy->source,
		.destination = copy->destination,
	};

	if (version >= CUPTI_VERSION_GRAPH_ID)
		record.graph = copy->graph;
	put_copy(batch, &record, copy->device, copy->context, copy->stream);
}

static void take_peer_copy(struct batch *batch, const void *from)
{
	const struct cupti_memcpy_peer *copy = from;
	struct agent_copy record = {
		.head.type = AGENT_COPY,
		.begin_ns = copy->start,
		.end_ns = copy->end,
		.bytes = copy->bytes,
		.graph_node = copy->graph_node,
		.correlation = copy->correlation,
		.kind = copy->copy_kind,
		.source = copy->source,
		.destination = copy->destination,
		.peer_device = copy->destination_device,
	};

	if (version >= CUPTI_VERSION_GRAPH_ID)
		record.graph = copy->graph;
	put_copy(batch, &record, copy->device, copy->context, copy->stream);
}

static void take_set(struct batch *batch, const void *from)
{
	const struct cupti_memset *set = from;
	struct agent_copy record = {
		.head.type = AGENT_SET,
		.begin_ns = set->start,
		.end_ns = set->end,
		.bytes = set->bytes,
		.graph_node = set->graph_node,
		.correlation = set->correlation,
		.destination = (uint8_t)set->memory_kind,
	};

	if (version >= CUPTI_VERSION_GRAPH_ID)
		record.graph = set->graph;
	put_copy(batch, &record, set->device, set->context, set->stream);
}

static void take_graph(struct batch *batch, const void *from)
{
	const struct cupti_graph_trace *graph = from;
	struct agent_graph record = {
		.head = { .bytes = sizeof(record), .type = AGENT_GRAPH },
		.begin_ns = graph->start,
		.end_ns = graph->end,
		.correlation = graph->correlation,
		.graph = graph->graph,
	};

	if (!take_times(batch, &record.begin_ns, &record.end_ns))
		return;
	record.head.lane =
		intern_lane(intern, batch->ring, graph->device, graph->context, graph->stream);
	if (record.head.lane)
		put(batch, &record.head);
	else
		batch->full++;
}

static uint32_t some(uint32_t number)
{
	return number == CUPTI_NO_STREAM ? 0 : number;
}

static void take_wait(struct batch *batch, const void *from)
{
	const struct cupti_synchronization *wait = from;
	struct agent_wait record = {
		.head = { .bytes = sizeof(record), .type = AGENT_SYNC },
		.begin_ns = wait->start,
		.end_ns = wait->end,
		.correlation = wait->correlation,
		.kind = wait->type,
		.context = wait->context,
		.stream = some(wait->stream),
		.event = some(wait->event),
	};

	if (take_times(batch, &record.begin_ns, &record.end_ns))
		put(batch, &record.head);
}

static void take_overhead(struct batch *batch, const void *from)
{
	const struct cupti_overhead *overhead = from;
	struct agent_wait record = {
		.head = { .bytes = sizeof(record), .type = AGENT_OVERHEAD },
		.begin_ns = overhead->start,
		.end_ns = overhead->end,
		.kind = overhead->overhead_kind,
	};

	if (version >= CUPTI_VERSION_OVERHEAD)
		record.correlation = overhead->correlation;
	if (overhead->object_kind == CUPTI_OBJECT_THREAD)
		record.tid = overhead->object.thread;
	if (overhead->object_kind == CUPTI_OBJECT_CONTEXT ||
	    overhead->object_kind == CUPTI_OBJECT_STREAM) {
		record.context = overhead->object.context;
		if (overhead->object_kind == CUPTI_OBJECT_STREAM)
			record.stream = overhead->object.stream;
	}
	if (take_times(batch, &record.begin_ns, &record.end_ns))
		put(batch, &record.head);
}

/* ---- buffers ------------------------------------------------------------------------------- */

static const struct activity {
	uint32_t kind;   /* enum cupti_kind */
	uint32_t wanted; /* enum agent_kind */
	void (*take)(struct batch *batch, const void *record);
} activities[] = {
	{ CUPTI_KIND_KERNEL, AGENT_WANT_KERNELS, take_kernel },
	{ CUPTI_KIND_SERIAL_KERNEL, AGENT_WANT_KERNELS, take_kernel },
	{ CUPTI_KIND_MEMCPY, AGENT_WANT_COPIES, take_copy },
	{ CUPTI_KIND_MEMCPY_PEER, AGENT_WANT_COPIES, take_peer_copy },
	{ CUPTI_KIND_MEMSET, AGENT_WANT_SETS, take_set },
	{ CUPTI_KIND_GRAPH_TRACE, AGENT_WANT_GRAPHS, take_graph },
	{ CUPTI_KIND_SYNCHRONIZATION, AGENT_WANT_SYNC, take_wait },
	{ CUPTI_KIND_OVERHEAD, AGENT_WANT_OVERHEAD, take_overhead },
};

static void take_record(struct batch *batch, const struct cupti_record *record)
{
	for (size_t i = 0; i < ARRAY_SIZE(activities); i++) {
		if (activities[i].kind == record->kind && activities[i].wanted & wanted) {
			activities[i].take(batch, record);
			return;
		}
	}
	batch->unknown++;
}

static void begin_batch(struct batch *batch, struct ring *ring)
{
	uint64_t since = __atomic_load_n(&ring->shared->active_since_ns, __ATOMIC_RELAXED);

	batch->ring = ring;
	batch->shared = ring->shared;
	batch->now_ns = clock_now() + clock_error + AHEAD_NS;
	batch->since_ns = since > clock_error ? since - clock_error : 0;
	batch->possible_ns = enabled_since > clock_error ? enabled_since - clock_error : 0;
	batch->until_ns = __atomic_load_n(&ring->shared->active_until_ns, __ATOMIC_RELAXED);
}

static void end_batch(struct batch *batch)
{
	ring_count(&batch->shared->activities, batch->written);
	ring_count(&batch->shared->lost_times, batch->impossible);
	ring_count(&batch->shared->unknown, batch->unknown);
	ring_count(&batch->shared->lost_ring, batch->full);
}

void activities_write(uint8_t *buffer, size_t valid_bytes,
                      uint32_t (*next)(uint8_t *, size_t, struct cupti_record **))
{
	struct ring *ring = writer_hold(WRITER_OPEN);
	struct cupti_record *record = NULL;
	struct batch batch = { 0 };

	if (!ring)
		return;
	pthread_mutex_lock(&lock);
	if (intern) {
		begin_batch(&batch, ring);
		while (next(buffer, valid_bytes, &record) == CUPTI_OK)
			take_record(&batch, record);
		end_batch(&batch);
	}
	pthread_mutex_unlock(&lock);
	writer_release();
}
