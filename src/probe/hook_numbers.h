/* SPDX-License-Identifier: MIT */
/*
 * The numbers of hooks, which records and sums carry. A number belongs to one function of one layer
 * for good, whichever file that is in. So what still carries it when its file was let go, is told
 * under the right name, and need not be waited for: the next file with this function takes it.
 * Those of functions that no file has any more stay unused. They are few: an owner has no more of
 * them than his files had at once (shares.h).
 */
#ifndef CUSCOPE_PROBE_HOOK_NUMBERS_H
#define CUSCOPE_PROBE_HOOK_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "probe/module.h"
#include "probe/shares.h"

struct hook_numbers {
	struct spare_numbers *spare; /* of each function */
	bool by_file;
	uint64_t owners[WIRE_HOOKS_MAX]; /* of those below `next` */
	size_t next;
};

/*
 * Numbers for all hooks of a module that are not off, as far as its owner's share goes: 0, or
 * -ENOSPC, and why (static). `reused` is called for each that another file had. Where calls are
 * told one by one, with the name of their file, a number is one of that name as well (`by_file`).
 */
int hook_numbers_take(struct hook_numbers *numbers, struct shares *shares, struct module *module,
                      void (*reused)(void *data, uint16_t id), void *data, const char **why);

/* They may be another file's. They keep their owner. */
void hook_numbers_give_back(struct hook_numbers *numbers, const struct module *module);

void hook_numbers_free(struct hook_numbers *numbers);

#endif
