// SPDX-License-Identifier: MIT
/*
 * Memory that a hostile process shares with cuscope: the input says what it writes where, and when
 * cuscope reads. Whatever comes out must keep what agents_options.record promises.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/agent_ring.h"
#include "agent/agent_probes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

#define RING_BYTES 65536

struct input {
	const uint8_t *at;
	size_t left;
};

static uint64_t take(struct input *input, size_t bytes)
{
	uint64_t value = 0;

	bytes = bytes < input->left ? bytes : input->left;
	memcpy(&value, input->at, bytes);
	input->at += bytes;
	input->left -= bytes;
	return value;
}

struct writer {
	struct agent_shared *shared;
	uint8_t *ring;
};

/* `bytes` of input, or zeroes where it is at its end, at any place of the ring. */
static void put(struct writer *writer, struct input *input, uint64_t at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		writer->ring[(at + i) % RING_BYTES] = (uint8_t)take(input, 1);
}

/* A record as an agent writes it, but for its contents: gets deeper than noise does. */
static void put_record(struct writer *writer, struct input *input)
{
	uint8_t type = (uint8_t)take(input, 1) % (AGENT_RECORD_TYPES + 1),
		flags = (uint8_t)take(input, 1);
	uint32_t bytes = (uint32_t)(take(input, 1) + 1) * 8;
	uint64_t at = writer->shared->head;

	for (size_t i = 0; i < 4; i++)
		writer->ring[(at + i) % RING_BYTES] = (uint8_t)(bytes >> 8 * i);
	writer->ring[(at + 4) % RING_BYTES] = type;
	writer->ring[(at + 5) % RING_BYTES] = flags;
	put(writer, input, at + 6, bytes - 6);
	writer->shared->head = at + bytes;
}

static void check_text(const char *text, const struct agent_head *head)
{
	const char *end = (const char *)head + head->bytes;

	CHECK(text < end && strnlen(text, (size_t)(end - text)) < (size_t)(end - text));
}

/* ---- calls that are recorded inside the process ---- */

#define SLOTS 8
#define PID   4711

static const struct seen {
	struct probe_records *by_ns, *by_ticks;
} * seen;
static uint64_t cookies[SLOTS];

static uint32_t thread_of(void *data, uint32_t tid)
{
	return tid % 4 ? tid : 0;
}

/* What the pipeline relies on. */
static void check_wire(void *data, const struct wire_head *head, size_t bytes)
{
	const struct wire_name *name = (const struct wire_name *)head;
	const struct wire_call *call = (const struct wire_call *)head;
	bool known = false;

	for (size_t i = 0; i < SLOTS; i++)
		known = known ||
		        (cookies[i] != PROBE_NO_COOKIE && cookie_hook(cookies[i]) == head->hook);
	CHECK(known && head->tgid == PID && head->tid % 4);
	if (head->type == WIRE_NAME) {
		CHECK(bytes == WIRE_NAME_BYTES(head->bytes) && head->bytes <= WIRE_STRING_MAX);
		CHECK(!head->bytes || !name->text[head->bytes - 1]);
		return;
	}
	CHECK(head->type == WIRE_CALL || head->type == WIRE_BEGIN);
	CHECK(head->words <= WIRE_WORDS && bytes == WIRE_CALL_BYTES(head->words));
	CHECK(call->begin_ns <= head->time_ns && call->begin_ns >= 1000);
	CHECK(!(head->flags & (WIRE_FOLDED | WIRE_BY_AGENT)));
}

static void make_slots(struct seen *made, struct tick_clock *ticks)
{
	struct probe_records_options options = { .pid = PID,
		                                 .cookies = cookies,
		                                 .n_cookies = SLOTS,
		                                 .since_ns = 1000,
		                                 .thread = thread_of,
		                                 .record = check_wire };

	for (size_t i = 0; i < SLOTS; i++)
		cookies[i] = i == 3 ? PROBE_NO_COOKIE
		                    : cookie_with_hook(100 + i) | cookie_with_words(i * 9);
	made->by_ns = probe_records_new(&options);
	options.ticks = ticks;
	made->by_ticks = probe_records_new(&options);
	seen = made;
}

static void check_record(void *data, const struct agent_head *head)
{
	static volatile uint8_t sink;
	size_t *records = data;

	CHECK(head->bytes % 8 == 0 && head->bytes >= sizeof(*head));
	CHECK(head->bytes <= AGENT_RECORD_MAX && (uintptr_t)head % 8 == 0);
	CHECK(head->type > AGENT_PAD && head->type < AGENT_RECORD_TYPES);
	for (size_t i = 0; i < head->bytes; i++)
		sink ^= ((const uint8_t *)head)[i];
	if (head->type == AGENT_NAME)
		check_text(((const struct agent_name *)head)->text, head);
	if (head->type == AGENT_NVTX)
		check_text(((const struct agent_nvtx *)head)->text, head);
	if (head->type == AGENT_PROBE_NAME)
		check_text(((const struct agent_probe_name *)head)->text, head);
	if (head->type == AGENT_CALL) {
		const struct agent_call *call = (const struct agent_call *)head;

		CHECK(sizeof(*call) + 8ull * ((uint64_t)call->arguments + call->blob) <=
		      head->bytes);
	}
	if (head->type == AGENT_KERNEL && head->flags & AGENT_KERNEL_LONG)
		CHECK(head->bytes >= sizeof(struct agent_kernel_long));
	probe_records_take(seen->by_ns, head, 1ull << 62);
	probe_records_take(seen->by_ticks, head, 1ull << 62);
	++*records;
}

/* False when the ring broke. */
static bool step(struct agent_ring *ring, struct writer *writer, struct input *input)
{
	size_t records = 0;
	struct err err = { 0 };
	struct agent_ring_probes probes;
	struct agent_shared copy;
	int64_t got;

	switch (take(input, 1) % 6) {
	case 0:
		put_record(writer, input);
		return true;
	case 1:
		writer->shared->head += take(input, 2);
		return true;
	case 2:
		writer->shared->head = take(input, 8);
		return true;
	case 3:
		put(writer, input, take(input, 2), (size_t)take(input, 1));
		return true;
	case 4:
		writer->shared->tail = take(input, 8);
		memset(writer->shared->text, (int)take(input, 1), sizeof(copy.text));
		writer->shared->probe_slots = (uint32_t)take(input, 4);
		writer->shared->answer.number = (uint32_t)take(input, 4);
		writer->shared->answer.code = (int32_t)take(input, 4);
		writer->shared->answer.area = take(input, 8);
		agent_ring_probes(ring, &probes);
		CHECK(probes.slots == writer->shared->probe_slots &&
		      probes.answer.number == writer->shared->answer.number &&
		      probes.answer.area == writer->shared->answer.area);
		agent_ring_set_names(ring, take(input, 8));
		agent_ring_shared(ring, &copy);
		CHECK(strnlen(copy.text, sizeof(copy.text)) < sizeof(copy.text));
		return true;
	default:
		got = agent_ring_read(ring, check_record, &records, &err);
		CHECK((got < 0) == (err.text[0] != '\0'));
		CHECK(got <= RING_BYTES && (got < 0 || records * 8 <= (size_t)got));
		return got >= 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct agent_ring *ring;
	struct tick_clock *ticks = tick_clock_new();
	struct writer writer;
	struct seen made;
	void *memory;
	int memfd;

	make_slots(&made, ticks);
	CHECK(agent_ring_new(RING_BYTES, &ring, &memfd, NULL) == 0);
	memory = mmap(NULL, AGENT_RING_AT + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd,
	              0);
	CHECK(memory != MAP_FAILED);
	writer = (struct writer){ memory, (uint8_t *)memory + AGENT_RING_AT };
	while (input.left && step(ring, &writer, &input))
		continue;
	probe_records_free(made.by_ns);
	probe_records_free(made.by_ticks);
	tick_clock_free(ticks);
	agent_ring_free(ring);
	munmap(memory, AGENT_RING_AT + RING_BYTES);
	close(memfd);
	return 0;
}
