/* SPDX-License-Identifier: MIT */
/*
 * Entries of a table by the process that each belongs to, so that the end of one goes through no
 * others: programs end, and become others, a thousand times a second.
 *
 *   struct row {
 *           ...
 *           struct owned owned;
 *   };
 *   struct owner *owners = NULL;
 *
 *   owned_add(&owners, pid, &row->owned);
 *   owned_remove(&owners, &row->owned);          before the row is freed
 *   for (owned = owned_first(owners, pid); owned; owned = next) {
 *           next = owned_next(owned);
 *           row = OWNED_ENTRY(owned, struct row);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct owner;

struct owned {
	struct owner *owner; /* NULL: of nobody */
	LIST_ENTRY(owned) of_owner;
};

#define OWNED_ENTRY(entry, type) ((type *)((char *)(entry)-offsetof(type, owned)))

void owned_add(struct owner **owners, uint32_t pid, struct owned *owned);
void owned_remove(struct owner **owners, struct owned *owned); /* it may be of nobody */

/* NULL: there is no more. */
struct owned *owned_first(const struct owner *owners, uint32_t pid);
struct owned *owned_next(const struct owned *owned);
