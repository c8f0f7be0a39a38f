// SPDX-License-Identifier: MIT
#include "agent/lib/calls.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/lib/clock.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/cupti_calls.h"
#include "agent/lib/probe_capture.h"
#include "agent/lib/writer.h"
#include "base/array.h"

#define ANY_ACTIVITY (AGENT_WANT_KERNELS | AGENT_WANT_COPIES | AGENT_WANT_SETS | AGENT_WANT_GRAPHS)
#define NUMBERS      1024 /* above all of a domain's callback numbers */

static const struct call {
	uint16_t number;
	uint16_t class; /* enum cupti_call_class */
	const char *name, *shape;
} calls[] = {
#define CALL(number, name, class, shape) { number, CUPTI_CALL_##class, #name, shape },
	CUPTI_DRIVER_CALLS(CALL) CUPTI_RUNTIME_CALLS(CALL)
#undef CALL
};

#define ONE(number, name, class, shape) +1
#define DRIVER_CALLS                    ((size_t)(0 CUPTI_DRIVER_CALLS(ONE))) /* come first */
#define CALLS                           (ARRAY_SIZE(calls))
_Static_assert(CALLS < CALLS_NAMES, "names of functions have numbers below all others");

/* By number: a place in `calls`, plus one. Filled before the first callback is asked for. */
static uint8_t by_number[2][NUMBERS];
_Static_assert(CALLS < UINT8_MAX, "by_number holds it");

/* In which ring a function's name was written, by its place in `calls`. */
static uint32_t said_in[CALLS];

/* The call that a thread is in: the outermost of those with one correlation. */
static __thread struct open_call {
	uint64_t begin_ns;
	uint32_t correlation;
	uint32_t number; /* of the callback and its domain; 0: none */
	uint32_t round;
} open_call;

/* Of measuring: correlations of another one, whose calls may still be open, come again. */
static uint32_t this_round;

static const uint32_t wanted_by[] = {
	[CUPTI_CALL_LAUNCH] = AGENT_WANT_KERNELS, [CUPTI_CALL_COPY] = AGENT_WANT_COPIES,
	[CUPTI_CALL_SET] = AGENT_WANT_SETS,       [CUPTI_CALL_GRAPH] = ANY_ACTIVITY,
	[CUPTI_CALL_MADE] = ANY_ACTIVITY,
};

static bool graphs_seen; /* since the process began: see enum agent_leftover */

void calls_prepare(void)
{
	__atomic_fetch_add(&this_round, 1, __ATOMIC_RELAXED);
	correlations_begin();
	if (by_number[0][calls[0].number])
		return;
	for (size_t i = CALLS; i-- > 0;)
		by_number[i >= DRIVER_CALLS][calls[i].number] = (uint8_t)(i + 1);
}

uint32_t calls_next(uint32_t domain, uint32_t kinds, unsigned *at)
{
	size_t begin = domain == CUPTI_DOMAIN_DRIVER ? 0 : DRIVER_CALLS;
	size_t end = domain == CUPTI_DOMAIN_DRIVER ? DRIVER_CALLS : CALLS;

	for (size_t i = begin + *at; i < end; i++) {
		if (!(wanted_by[calls[i].class] & kinds))
			continue;
		*at = (unsigned)(i - begin + 1);
		return calls[i].number;
	}
	return 0;
}

/* NULL: of none that matters; callbacks of all calls come while others need them. */
static const struct call *call_of(uint32_t domain, uint32_t id)
{
	uint8_t which;

	if (domain - CUPTI_DOMAIN_DRIVER > 1 || id >= NUMBERS)
		return NULL;
	which = by_number[domain - CUPTI_DOMAIN_DRIVER][id];
	return which ? &calls[which - 1] : NULL;
}

static void notice_graph(const struct call *call)
{
	if (call->class >= CUPTI_CALL_GRAPH && !__atomic_load_n(&graphs_seen, __ATOMIC_RELAXED))
		__atomic_store_n(&graphs_seen, true, __ATOMIC_RELEASE);
}

void calls_notice_graphs(uint32_t domain, uint32_t id)
{
	const struct call *call = call_of(domain, id);

	if (call)
		notice_graph(call);
}

bool calls_saw_graphs(void)
{
	return __atomic_load_n(&graphs_seen, __ATOMIC_ACQUIRE);
}

/* The name of a call's function, once a ring; two threads at once may say it twice. */
static bool say_name(struct ring *ring, size_t which)
{
	struct {
		struct agent_name name;
		char text[64];
	} record = { .name.head.type = AGENT_NAME, .name.number = (uint32_t)which + 1 };
	size_t length = strlen(calls[which].name);
	uint32_t generation = writer_generation();

	if (__atomic_load_n(&said_in[which], __ATOMIC_ACQUIRE) == generation)
		return true;
	memcpy(record.name.text, calls[which].name, length + 1);
	record.name.head.bytes = ring_rounded(offsetof(struct agent_name, text) + length + 1);
	if (!ring_put(ring, &record.name.head))
		return false;
	__atomic_store_n(&said_in[which], generation, __ATOMIC_RELEASE);
	return true;
}

/* Arguments as they lie in memory, each into a word of its own. */
static uint32_t put_arguments(const char *shape, const char *from, uint64_t *word)
{
	uint32_t n = 0;
	size_t at = 0;

	for (; shape[n]; n++) {
		size_t bytes = shape[n] == 'q' ? 8 : shape[n] == 'u' ? 4 : shape[n] == 'h' ? 2 : 1;

		at = (at + bytes - 1) & ~(bytes - 1);
		word[n] = 0;
		memcpy(&word[n], from + at, bytes); /* both machines are little-endian */
		at += bytes;
	}
	return n;
}

static bool has_config(const struct call *call)
{
	return call->number == CUPTI_ID_cuLaunchKernelEx ||
	       call->number == CUPTI_ID_cuLaunchKernelEx_ptsz;
}

static uint32_t put_blob(const struct cupti_launch_ex *launch, uint64_t *word)
{
	if (!launch->config)
		return 0;
	memcpy(word, launch->config, sizeof(*launch->config));
	return sizeof(*launch->config) / sizeof(*word);
}

static void write_call(struct ring *ring, size_t which, const struct cupti_callback_data *data,
                       uint64_t end_ns)
{
	const struct call *call = &calls[which];
	struct {
		struct agent_call call;
		uint64_t word[AGENT_CALL_WORDS];
	} record;
	uint32_t words = 0;

	if (open_call.begin_ns < __atomic_load_n(&ring->shared->active_since_ns, __ATOMIC_RELAXED))
		return;
	if (!say_name(ring, which))
		return;
	record.call = (struct agent_call){
		.head = { .type = AGENT_CALL,
		          .flags = which < DRIVER_CALLS ? 0 : AGENT_CALL_RUNTIME },
		.correlation = data->correlation,
		.tid = writer_tid(),
		.begin_ns = open_call.begin_ns,
		.end_ns = end_ns,
		.name = (uint32_t)which + 1,
		.result = data->result ? *(const int32_t *)data->result : 0,
	};
	if (writer_kinds(AGENT_WANT_ARGUMENTS) && data->parameters) {
		words = put_arguments(call->shape, data->parameters, record.word);
		record.call.arguments = words;
		if (which < DRIVER_CALLS && has_config(call)) {
			record.call.blob = put_blob(data->parameters, record.word + words);
			record.call.head.flags |= record.call.blob ? AGENT_CALL_BLOB : 0;
			words += record.call.blob;
		}
	}
	record.call.head.bytes = (uint32_t)(sizeof(record.call) + words * sizeof(*record.word));
	ring_put(ring, &record.call.head);
}

void calls_node(uint64_t node, uint64_t original)
{
	struct ring *ring = writer_hold(ANY_ACTIVITY);
	const struct agent_node record = {
		.head = { .bytes = sizeof(record), .type = AGENT_NODE },
		.node = node,
		.original = original,
	};

	if (!ring)
		return;
	ring_put(ring, &record.head);
	writer_release();
}

/*
 * A call of the runtime and those of the driver that it makes have one correlation: only the
 * outermost is told of, and none where a launch among them is recorded by a probe. A call whose
 * entry was not seen, or whose end was not (an exception went through it), is none.
 */
void calls_callback(uint32_t domain, uint32_t id, const void *callback_data, bool graphs)
{
	const struct cupti_callback_data *data = callback_data;
	uint32_t number = id * 4 + domain, round = __atomic_load_n(&this_round, __ATOMIC_RELAXED);
	const struct call *call = call_of(domain, id);
	struct open_call *open;
	struct ring *ring;

	if (!call)
		return;
	if (graphs)
		notice_graph(call);
	if (!writer_kinds(wanted_by[call->class]))
		return;
	if (call->class == CUPTI_CALL_LAUNCH &&
	    (data->site == CUPTI_ENTER ? correlation_tell(data->correlation)
	                               : correlation_is_told(data->correlation)))
		return;
	open = &open_call;
	if (data->site == CUPTI_ENTER) {
		if (call->class == CUPTI_CALL_MADE)
			return;
		if (open->number && open->correlation == data->correlation && open->round == round)
			return;
		open->round = round;
		open->correlation = data->correlation;
		open->number = number;
		open->begin_ns = clock_now();
		return;
	}
	if (open->number != number || open->correlation != data->correlation)
		return;
	open->number = 0;
	ring = writer_hold(ANY_ACTIVITY);
	if (!ring)
		return;
	write_call(ring, (size_t)(call - calls), data, clock_now());
	writer_release();
}
