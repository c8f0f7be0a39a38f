// SPDX-License-Identifier: MIT
#include "agent/lib/orders.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/lib/probes.h"
#include "agent/lib/thunks.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17; older ones take the address as a wish */
#endif

#define PAGE         4096u
#define AREAS_MOST   64
#define AREA_LEAST   (256u << 10) /* is mapped at once: the next session takes of it as well */
#define STEP         (1ull << 20) /* between places that are tried: some thousands at most */
#define LOWEST       (1ull << 16) /* nobody may map what is below (vm.mmap_min_addr) */
#define GROWTH       (1ull << 30) /* kept free where the heap and the first stack grow */
#define SLOTS_A_READ 64

#ifdef __x86_64__

_Static_assert(AGENT_SLOTS_MOST == THUNKS, "one thunk a slot");
_Static_assert(AGENT_STACK_WORDS_MOST == THUNK_STACK_MOST, "what thunks copy");

static int refusal; /* why nothing can be asked for: probes_open's */
static uint32_t slots_used;

/* ---- memory for code ----------------------------------------------------------------------- */

static struct area {
	uint64_t at;
	uint32_t bytes, used;
} areas[AREAS_MOST];
static uint32_t n_areas, areas_bytes;

/* What was given out of these, for the next session. */
static struct agent_area given[AGENT_AREAS_MOST];
static uint32_t n_given;

static bool is_near(uint64_t at, uint64_t bytes, uint64_t near)
{
	return (at >= near || near - at <= AGENT_REACH) &&
	       (at + bytes <= near || at + bytes - near <= AGENT_REACH);
}

static bool overlap(uint64_t at, uint64_t bytes, uint64_t from, uint64_t to)
{
	return at < to && at + bytes > from;
}

/* What lies in their way they only find when they grow. */
static bool is_for_growth(uint64_t at, uint64_t bytes)
{
	uint64_t heap = (uint64_t)sbrk(0), stack = getauxval(AT_RANDOM);

	return overlap(at, bytes, heap, heap + GROWTH) || overlap(at, bytes, stack - GROWTH, stack);
}

/* Not writable, then or ever: cuscope writes it as a debugger would. */
static int map_at(uint64_t at, uint32_t bytes)
{
	void *memory;

	if (at < LOWEST || at + bytes < at || is_for_growth(at, bytes))
		return -EEXIST;
	memory = mmap((void *)at, bytes, PROT_READ | PROT_EXEC,
	              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	if ((uint64_t)memory == at)
		return 0;
	munmap(memory, bytes);
	return -EEXIST;
}

/* Downwards first: there are fewer things that grow. */
static int map_near(uint64_t near, uint32_t bytes, uint64_t *at)
{
	int code;

	near &= ~(uint64_t)(PAGE - 1);
	for (uint64_t away = bytes; away <= AGENT_REACH && away <= near; away += STEP) {
		*at = near - away;
		code = map_at(*at, bytes);
		if (!code || code == -EACCES)
			return code;
	}
	for (uint64_t away = PAGE; away + bytes <= AGENT_REACH; away += STEP) {
		*at = near + away;
		code = map_at(*at, bytes);
		if (!code || code == -EACCES)
			return code;
	}
	return -ENOSPC;
}

static int add_area(uint64_t near, uint32_t bytes)
{
	uint32_t all = bytes > AREA_LEAST ? bytes : AREA_LEAST;
	uint64_t at;
	int code;

	if (n_areas == AREAS_MOST || all > AGENT_AREA_MOST - areas_bytes)
		return -ENOBUFS;
	code = map_near(near, all, &at);
	if (code)
		return code;
	areas[n_areas++] = (struct area){ .at = at, .bytes = all };
	areas_bytes += all;
	return 0;
}

static void remember(uint64_t at, uint32_t bytes)
{
	if (n_given < AGENT_AREAS_MOST)
		given[n_given++] = (struct agent_area){ .address = at, .bytes = bytes };
}

static int take_area(uint64_t near, uint32_t bytes, uint64_t *at)
{
	if (!bytes || bytes > AGENT_AREA_MOST)
		return -EINVAL;
	bytes = (bytes + PAGE - 1) / PAGE * PAGE;
	for (int tries = 0; tries < 2; tries++) {
		int code;

		for (uint32_t i = 0; i < n_areas; i++) {
			struct area *area = &areas[i];

			*at = area->at + area->used;
			if (bytes > area->bytes - area->used || !is_near(*at, bytes, near))
				continue;
			area->used += bytes;
			remember(*at, bytes);
			return 0;
		}
		code = add_area(near, bytes);
		if (code)
			return code;
	}
	return -ENOSPC;
}

static bool is_code(uint64_t address)
{
	for (uint32_t i = 0; i < n_areas; i++) {
		if (address >= areas[i].at && address - areas[i].at < areas[i].used)
			return true;
	}
	return false;
}

/* ---- slots --------------------------------------------------------------------------------- */

/* A thread may have looked already at where a slot goes on, and not have gone. So that stays. What
 * it records is of one session: see entered() of probes.c. */
static int check_slot(const struct agent_slot *slot)
{
	if (slot->slot >= AGENT_SLOTS_MOST || slot->does >= AGENT_SLOT_DOES ||
	    !is_code(slot->original))
		return -EINVAL;
	if (slot->stack_words != AGENT_STACK_WORDS_UNKNOWN &&
	    slot->stack_words > AGENT_STACK_WORDS_MOST)
		return -EINVAL;
	return probes_may_set(slot->slot, (const void *)slot->original) ? 0 : -EEXIST;
}

/* From the first to the last that leads there, whatever lies between. */
static void remember_slot(uint64_t original, uint32_t number)
{
	for (uint32_t i = 0; i < n_given; i++) {
		struct agent_area *area = &given[i];
		uint32_t end = area->first + area->n;

		if (original < area->address || original - area->address >= area->bytes)
			continue;
		if (!area->n || number < area->first)
			area->first = number;
		if (!area->n || number >= end)
			end = number + 1;
		area->n = end - area->first;
		return;
	}
}

static int set_slot(const struct agent_slot *slot)
{
	const struct probe_plan plan = {
		.original = (const void *)slot->original,
		.cookie = slot->cookie,
		.stack_words = slot->stack_words,
		.begins = slot->begins,
		.entry = slot->entry,
	};
	uint32_t number = slot->slot;

	if (!probes_may_set(number, plan.original)) /* twice in one list */
		return -EEXIST;
	probes_set(number, &plan);
	probes_turn(number, slot->does);
	remember_slot(slot->original, number);
	if (slots_used <= number)
		slots_used = number + 1;
	return 0;
}

static int for_each_slot(int fd, uint32_t n, int (*what)(const struct agent_slot *slot))
{
	struct agent_slot some[SLOTS_A_READ];
	int code = 0;

	for (uint32_t i = 0; i < n && !code; i += SLOTS_A_READ) {
		uint32_t count = n - i < SLOTS_A_READ ? n - i : SLOTS_A_READ;
		size_t bytes = count * sizeof(*some);

		if (pread(fd, some, bytes, (off_t)(i * sizeof(*some))) != (ssize_t)bytes)
			return -EINVAL;
		for (uint32_t k = 0; k < count && !code; k++)
			code = what(&some[k]);
	}
	return code;
}

static int set_slots(int fd, uint32_t n)
{
	int code;

	if (fd < 0 || !n || n > AGENT_SLOTS_MOST)
		return -EINVAL;
	code = for_each_slot(fd, n, check_slot);
	return code ? code : for_each_slot(fd, n, set_slot);
}

static int turn_slots(uint32_t first, uint32_t n, uint32_t does)
{
	if (!n || n > AGENT_SLOTS_MOST || first > AGENT_SLOTS_MOST - n || does >= AGENT_SLOT_DOES)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		if (!probes_is_now(first + i))
			return -EINVAL;
	}
	for (uint32_t i = 0; i < n; i++)
		probes_turn(first + i, does);
	return 0;
}

/* ---- requests ------------------------------------------------------------------------------ */

static int carry_out(const struct agent_message *message, int fd, uint64_t *area)
{
	if (refusal)
		return refusal;
	switch (message->type) {
	case AGENT_PROBES_AREA:
		return take_area(message->area.near, message->area.bytes, area);
	case AGENT_PROBES_SET:
		return set_slots(fd, message->slots.n);
	default:
		return turn_slots(message->slots.first, message->slots.n, message->slots.does);
	}
}

/* Memory that no slot leads to was never used. */
static void tell_earlier(struct agent_shared *shared)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_given; i++) {
		if (given[i].n)
			shared->probe_area[n++] = given[i];
	}
	shared->probe_areas = n;
	shared->probe_used = slots_used;
}

void orders_open(struct ring *ring, uint32_t flags)
{
	const struct probes_options options = {
		.clock = flags & AGENT_PROBES_TICKS ? AGENT_CLOCK_TICKS : AGENT_CLOCK_NS,
		.begins = flags & AGENT_PROBES_BEGINS,
		.may_read = flags & AGENT_PROBES_READS,
	};

	for (uint32_t i = 0; i < slots_used; i++) /* before: no slot records what another one did */
		probes_turn(i, PROBE_PASSES_ON);
	refusal = probes_open(ring, &options);
	ring->shared->answer.code = refusal; /* to no request: see wire.h */
	if (refusal)
		return;
	tell_earlier(ring->shared);
	ring->shared->probe_thunks = (uint64_t)probes_thunk(0);
	ring->shared->probe_thunk_bytes = THUNK_BYTES;
	__atomic_store_n(&ring->shared->probe_slots, AGENT_SLOTS_MOST, __ATOMIC_RELEASE);
}

void orders_look(void)
{
	probes_look();
}

void orders_tell_open(void)
{
	probes_tell_open();
}

bool orders_close(void)
{
	return refusal || probes_close() == 0;
}

#else

/* There are no thunks for this machine yet. */
void orders_open(struct ring *ring, uint32_t flags)
{
	ring->shared->answer.code = -ENOSYS;
}

static int carry_out(const struct agent_message *message, int fd, uint64_t *area)
{
	return -ENOSYS;
}

void orders_look(void)
{
}

void orders_tell_open(void)
{
}

bool orders_close(void)
{
	return true;
}

#endif

void orders_take(struct ring *ring, const struct agent_message *message, int fd)
{
	struct agent_answer *answer = &ring->shared->answer;
	uint64_t area = 0;

	answer->code = carry_out(message, fd, &area);
	answer->area = answer->code ? 0 : area;
	/* in each kind of request it has the same place */
	__atomic_store_n(&answer->number, message->area.number, __ATOMIC_RELEASE);
}
