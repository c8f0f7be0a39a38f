// SPDX-License-Identifier: MIT
#include "report/findings/repeats.h"

#include <stdlib.h>

#include "base/xalloc.h"

#define PLACES 8192 /* where runs were seen last: longer loops than this are not found */

struct repeats {
	uint64_t seen;
	uint64_t last[REPEATS_LENGTH]; /* a ring */
	struct {
		uint64_t hash;
		uint64_t at; /* in the row, from 1; 0: empty */
	} place[PLACES];
	uint64_t distance; /* the one that has the majority, if any has */
	uint64_t votes;
	uint64_t repeated; /* at this distance, since it was chosen */
};

struct repeats *repeats_new(void)
{
	return xcalloc(1, sizeof(struct repeats));
}

void repeats_free(struct repeats *repeats)
{
	free(repeats);
}

static uint64_t mix(uint64_t hash, uint64_t thing)
{
	hash = (hash ^ thing) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t hash_of_run(const struct repeats *repeats)
{
	uint64_t hash = 0;

	for (size_t i = 1; i <= REPEATS_LENGTH; i++)
		hash = mix(hash, repeats->last[(repeats->seen + i) % REPEATS_LENGTH]);
	return hash;
}

/* A majority by voting: it takes no room for those that lose. */
static void vote(struct repeats *repeats, uint64_t distance)
{
	if (distance == repeats->distance) {
		repeats->votes++;
		repeats->repeated++;
	} else if (repeats->votes) {
		repeats->votes--;
	} else {
		repeats->distance = distance;
		repeats->votes = repeats->repeated = 1;
	}
}

void repeats_add(struct repeats *repeats, uint64_t thing)
{
	uint64_t hash, place;

	repeats->seen++;
	repeats->last[repeats->seen % REPEATS_LENGTH] = thing;
	if (repeats->seen < REPEATS_LENGTH)
		return;
	hash = hash_of_run(repeats);
	place = (hash >> 40) % PLACES;
	if (repeats->place[place].at && repeats->place[place].hash == hash)
		vote(repeats, repeats->seen - repeats->place[place].at);
	repeats->place[place].hash = hash;
	repeats->place[place].at = repeats->seen;
}

uint64_t repeats_seen(const struct repeats *repeats)
{
	return repeats->seen;
}

uint64_t repeats_distance(const struct repeats *repeats, uint64_t *repeated)
{
	*repeated = repeats->repeated;
	return repeats->distance;
}
