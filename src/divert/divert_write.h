/* SPDX-License-Identifier: MIT */
/* What is written into a process, compared before and after, and where its threads are put. */
#ifndef CUSCOPE_DIVERT_DIVERT_WRITE_H
#define CUSCOPE_DIVERT_DIVERT_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The first bytes of all entries of a module, as a process has them now. Entries lie close to each
 * other, so they are read with few calls into memory that is there already: threads wait meanwhile.
 */

struct divert_target;
struct divert_entry;
struct divert_code;

/* Memory for it, which is touched so that no page of it has to be made later. */
struct divert_code *divert_code_new(const struct divert_target *target);

/* For tests: the helper keeps it until it ends. */
void divert_code_free(struct divert_code *code);

/*
 * Reads all of it. By the memory that is open, or, where it is not 0, of a thread of the target
 * that is stopped, which takes a third of the time.
 */
void divert_code_read(struct divert_code *code, const struct divert_target *target, pid_t tid);

/*
 * The first bytes of an entry, DIVERT_COMPARE at most, until the thread's next call. Those that
 * could not be read with others are read now. NULL: they are not there.
 */
const uint8_t *divert_code_at(const struct divert_code *code, const struct divert_target *target,
                              const struct divert_entry *entry, size_t bytes);

#endif
