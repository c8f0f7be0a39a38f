// SPDX-License-Identifier: MIT
#include "base/owned.h"

#include "base/map.h"

struct owner {
	uint32_t pid;
	LIST_HEAD(, owned) entries; /* never empty */
	UT_hash_handle hh;
};

void owned_add(struct owner **owners, uint32_t pid, struct owned *owned)
{
	struct owner *owner = MAP_MAKE(*owners, pid, &pid);

	owned->owner = owner;
	LIST_INSERT_HEAD(&owner->entries, owned, of_owner);
}

void owned_remove(struct owner **owners, struct owned *owned)
{
	struct owner *owner = owned->owner;

	if (!owner)
		return;
	LIST_REMOVE(owned, of_owner);
	owned->owner = NULL;
	if (LIST_EMPTY(&owner->entries))
		MAP_DROP(*owners, owner);
}

struct owned *owned_first(const struct owner *owners, uint32_t pid)
{
	const struct owner *owner = MAP_FIND(owners, &pid);

	return owner ? LIST_FIRST(&owner->entries) : NULL;
}

struct owned *owned_next(const struct owned *owned)
{
	return LIST_NEXT(owned, of_owner);
}
