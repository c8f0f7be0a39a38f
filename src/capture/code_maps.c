// SPDX-License-Identifier: MIT
#include "capture/code_maps.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define AGAIN_NS     100000000u /* 100 ms */
#define AGAIN_PER_NS 50u        /* of reading */
#define SHARE        10u        /* one part in so many */
#define CREDIT_MOST  500000000u

void code_maps_drop(struct code_maps *maps, struct budget *budget, uint32_t tgid)
{
	for (size_t i = 0; i < maps->count; i++)
		free((char *)maps->mappings[i].path);
	free(maps->mappings);
	budget_give(budget, tgid, maps->bytes);
	*maps = (struct code_maps){ .read_ns = maps->read_ns, .again_ns = maps->again_ns };
}

/* ---- reading ------------------------------------------------------------------------------- */

struct code_maps_reading {
	struct code_maps *maps;
	struct budget *budget;
	uint32_t tgid;
};

/* What grows by doubling is paid for twice. */
static int note(const struct mapping *mapping, void *data)
{
	struct code_maps_reading *reading = data;
	struct code_maps *maps = reading->maps;
	size_t bytes = 2 * sizeof(*mapping) + strlen(mapping->path) + 1 + 16;

	if (maps->bytes + bytes > CODE_MAPS_MOST ||
	    !budget_take(reading->budget, reading->tgid, bytes))
		return 1;
	maps->bytes += bytes;
	maps->mappings = vec_room(maps->mappings, maps->count, sizeof(*mapping));
	maps->mappings[maps->count] = *mapping;
	maps->mappings[maps->count++].path = xstrdup(mapping->path);
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct mapping *first = a, *second = b;

	return (first->start > second->start) - (first->start < second->start);
}

static bool has_credit(struct code_maps_share *share, uint64_t now)
{
	if (!share->since_ns)
		share->credit_ns = CREDIT_MOST;
	else
		share->credit_ns += (now - share->since_ns) / SHARE;
	if (share->credit_ns > CREDIT_MOST)
		share->credit_ns = CREDIT_MOST;
	share->since_ns = now;
	return share->credit_ns > 0;
}

/* False: it is not time yet. */
static bool read_again(struct code_maps *maps, struct code_maps_share *share, struct budget *budget,
                       uint32_t tgid)
{
	struct code_maps_reading reading = { .maps = maps, .budget = budget, .tgid = tgid };
	uint64_t begin = clock_now_ns(), took;

	if (begin < maps->again_ns || !has_credit(share, begin))
		return false;
	code_maps_drop(maps, budget, tgid);
	maps_each((pid_t)tgid, note, &reading, NULL);
	if (maps->count) /* of the kernel they come in this order */
		qsort(maps->mappings, maps->count, sizeof(*maps->mappings), by_address);
	maps->read_ns = clock_now_ns();
	took = maps->read_ns - begin;
	share->credit_ns -= took < share->credit_ns ? took : share->credit_ns;
	maps->again_ns =
		maps->read_ns + (took < AGAIN_NS / AGAIN_PER_NS ? took * AGAIN_PER_NS : AGAIN_NS);
	return true;
}

/* ---- asking -------------------------------------------------------------------------------- */

static int place_of(const void *key, const void *element)
{
	const struct mapping *mapping = element;
	uint64_t address = *(const uint64_t *)key;

	return address < mapping->start ? -1 : address >= mapping->end;
}

static const struct mapping *look(const struct code_maps *maps, uint64_t address)
{
	return maps->count ? bsearch(&address, maps->mappings, maps->count, sizeof(*maps->mappings),
	                             place_of)
	                   : NULL;
}

/* What is known is asked again when it may be: another file can be mapped there by now. */
enum code_maps_answer code_maps_find(struct code_maps *maps, struct code_maps_share *share,
                                     struct budget *budget, uint32_t tgid, uint64_t address,
                                     const struct mapping **mapping)
{
	bool fresh = read_again(maps, share, budget, tgid);

	*mapping = look(maps, address);
	if (*mapping)
		return CODE_MAPS_FOUND;
	return fresh ? CODE_MAPS_NONE : CODE_MAPS_TOO_SOON;
}
