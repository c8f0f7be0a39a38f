/* SPDX-License-Identifier: MIT */
/* The words of the answer. Private to report/why.c. */
#pragma once

#include "account/answer.h"
#include "account/ranks.h"
#include "account/standing.h"
#include "report/why.h"

/* Why no account can be made of what there is; NULL: it can. */
const char *why_words_unknown(const struct facts *facts, const struct why_options *options);

/* Why there is no account: a sentence without its full stop. */
const char *why_words_none(const struct facts *facts, const struct why_options *options);

/* "the host waits for a pipe in train.py:91 loop": half a sentence. */
void why_words_wait(const struct account_via *via, const struct chains *chains, struct buf *out);

/* A name that a target chose, as a screen may have it; NULL: it is not known. */
void why_words_name(struct buf *out, const char *name);

/* Its command ("python3 train.py"), or the name that it has. */
const char *why_words_process(const struct facts *facts, const struct process *process);

/* The machine that it ran on, where recordings are of several; NULL: they are not. */
const char *why_words_host(const struct facts *facts, const struct process *process);

/* How well clocks of other machines go by the first one's: a sentence without its full stop;
 * nothing where there is one machine. */
void why_words_clocks(const struct facts *facts, struct buf *out);

/* Its user, by name; NULL: not known. */
const char *why_words_user(const struct facts *facts, const struct process *process);

/* Its rank in its job, as it says; NULL: not known. */
const char *why_words_rank(const struct facts *facts, const struct process *process);

/* The same, or else its number in the communicator; nothing where neither is known. */
void why_words_rank_of(const struct facts *facts, const struct collective_rank *rank,
                       struct buf *out);

/* "Rank 5 (pid 42) comes last to 83 % of 400 collectives, by 8.1 ms; 7 others wait for it, 31 % of
 * the time": a sentence without its full stop. */
void why_words_late(const struct facts *facts, const struct rank_row *late, struct buf *out);

/* Who has not launched what, of a communicator that stands still: a sentence without its full stop.
 */
void why_words_standing(const struct standing *standing, struct buf *out);

/* What its first thread is in, where it is known; of a rank whose name and place are in words. */
void why_words_does(const struct standing_rank *rank, struct buf *out);

/* The first digits of a communicator's id, and whose it is where others say that theirs has it. */
void why_words_comm_of(uint64_t id, uint64_t person, bool claimed, struct buf *out);

/* The same by its row; "?": it is not known. */
void why_words_comm(const struct facts *facts, uint32_t number, struct buf *out);

/* Which communicators several users say are theirs, and what of whom there was no room for:
 * sentences without their full stops. */
void why_words_persons(const struct facts *facts, void (*each)(void *data, const char *sentence),
                       void *data);

/* How sure it is, and why: a sentence. */
void why_words_sure(const struct answer_change *change, const struct facts *facts, struct buf *out);

/* What to try, without a full stop; NULL: nothing that fits is known. */
const char *why_words_try(const struct answer_change *change, const struct chains *chains);

/* What was not recorded and could have told more; ends with NULL. Static storage. */
const char *const *why_words_missing(const struct facts *facts, const struct accounts *accounts,
                                     const struct why_options *options);
