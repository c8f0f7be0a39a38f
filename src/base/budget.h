/* SPDX-License-Identifier: MIT */
/*
 * Accounts of memory that targets can make grow: one for each owner (a process, by its pid) and one
 * for all. What is kept because a target said or did something is taken from them first. Where
 * there is no room it is left out and counted. Who it was is told once.
 *
 * A small part is each owner's even when all is taken, so that one who takes everything does not
 * leave the others without a name. What an ended owner has left of one stays a small part until it
 * is given back or there is room for it: so what is never given back has a bound too. Sums are of
 * bytes asked for: what malloc adds is a tenth.
 *
 * Where it is known whose owners are, one person but root has five eighths of all, and a quarter of
 * the small parts. An eighth is for owners of whom nobody knows it, as they had ended before they
 * were looked at, and a quarter of the small parts: so who has processes of both kinds leaves room
 * for others. What an ended owner leaves behind stays its person's.
 *
 * Not for several threads at a time. NULL is a budget without limits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_SMALL  (32u << 10) /* an owner's in any case */
#define BUDGET_OWNERS 256u        /* of so many in all: 8 MiB above the limit of all */

struct budget;

struct budget *budget_new(size_t each, size_t all);

/* Whose an owner is, as quota.h numbers users, or BUDGET_UNKNOWN; it is asked of each that has
 * nothing. */
#define BUDGET_UNKNOWN UINT64_MAX
void budget_of_persons(struct budget *budget, uint64_t (*person_of)(uint32_t owner));

/* The same of one, said by who takes for it. It holds while the owner has something. */
void budget_person(struct budget *budget, uint32_t owner, uint64_t person);

/* When an owner began, not 0: where it is said, one that began at another time is another. */
void budget_began(struct budget *budget, uint32_t owner, uint64_t began);

void budget_free(struct budget *budget);

/* False, and counted, where there is no room. */
bool budget_take(struct budget *budget, uint32_t owner, size_t bytes);
void budget_give(struct budget *budget, uint32_t owner, size_t bytes);

/* The owner is gone, and its number may be another's, which has a budget of its own. */
void budget_end(struct budget *budget, uint32_t owner);

size_t budget_used(const struct budget *budget);

/*
 * For what is given back as a whole, and kept anew as far as it is still wanted. Worn: of the room
 * that there was when it began, or was last said to be as good as new, a quarter is taken, so that
 * one owner has not had all of his yet, or somebody was refused.
 */
bool budget_is_worn(const struct budget *budget);
void budget_as_new(struct budget *budget);

uint64_t budget_refused(const struct budget *budget); /* how often, ever */

enum budget_limit { BUDGET_LIMIT_OWN, BUDGET_LIMIT_PERSON, BUDGET_LIMIT_ALL };

/* An owner that was refused, each once and 64 at most; and which limit had no room. */
bool budget_news(struct budget *budget, uint32_t *owner, enum budget_limit *limit);

uint64_t budget_unnamed(const struct budget *budget); /* owners that were refused after those */
