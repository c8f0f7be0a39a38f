/* SPDX-License-Identifier: MIT */
/*
 * The different rules of one file. Hundreds of thousands of rows have a few hundred of them, so a
 * row holds a number.
 */
#ifndef CUSCOPE_UNWIND_FRAME_RULES_H
#define CUSCOPE_UNWIND_FRAME_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire_unwind.h"
#include "unwind/cfi_program.h"

struct frame_rules {
	struct wire_rule *rules;
	uint32_t count, room;
	uint16_t *table; /* by hash: number + 1, 0 for none */
};

void frame_rules_begin(struct frame_rules *rules);
void frame_rules_free(struct frame_rules *rules);

/*
 * The number of a rule, which is added if it is new. `work` is what looking for it took, at most
 * some 64. UNWIND_UNUSED where there are too many: UNWIND_RULES_MAX, or some 64 that are made to
 * meet in one place of the table.
 */
uint32_t frame_rules_number(struct frame_rules *rules, const struct wire_rule *rule, int64_t *work);

/* False where programs could not follow it: the rule is CFA_OTHER then. */
bool frame_rule_of(const struct cfi_machine *machine, const struct cfi_state *state,
                   struct wire_rule *rule);

/* Of CFA_NONE, CFA_SIGNAL, CFA_STOP, CFA_OTHER, which need no more than their name. */
struct wire_rule frame_rule_plain(enum unwind_cfa kind);

#endif
