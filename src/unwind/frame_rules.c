// SPDX-License-Identifier: MIT
#include "unwind/frame_rules.h"

#include <elf.h>
#include <stdlib.h>

#include "base/vec.h"
#include "base/xalloc.h"

#define TABLE_BITS 15 /* twice UNWIND_RULES_MAX */
#define TABLE_SIZE (1u << TABLE_BITS)
#define STEPS_MAX  64

#define X86_R10 10 /* gcc keeps the caller's stack in it while it aligns its own */
#define X86_RA  (-8)

_Static_assert(TABLE_SIZE >= 2 * UNWIND_RULES_MAX && UNWIND_RULES_MAX < UINT16_MAX,
               "every rule has a place, and its number fits");
_Static_assert(CFI_OTHER < 8, "how a register is saved takes three bits of a key");
_Static_assert(sizeof(struct wire_rule) == 16, "rules are compared and hashed as bytes");

/* ---- the table ------------------------------------------------------------------------------- */

void frame_rules_begin(struct frame_rules *rules)
{
	*rules = (struct frame_rules){
		.table = xcalloc(TABLE_SIZE, sizeof(*rules->table)),
		.states = xcalloc(1u << FRAME_STATE_BITS, sizeof(*rules->states)),
	};
}

void frame_rules_free(struct frame_rules *rules)
{
	free(rules->rules);
	free(rules->table);
	free(rules->states);
	*rules = (struct frame_rules){ 0 };
}

static uint32_t hash_of(const struct wire_rule *rule)
{
	uint64_t words[2], hash;

	memcpy(words, rule, sizeof(words));
	hash = words[0] * 0x9e3779b97f4a7c15ull ^ words[1] * 0xc2b2ae3d27d4eb4full;
	hash ^= hash >> 29;
	return (uint32_t)(hash * 0x9e3779b97f4a7c15ull >> (64 - TABLE_BITS));
}

static uint32_t add_rule(struct frame_rules *rules, const struct wire_rule *rule)
{
	if (rules->count == UNWIND_RULES_MAX)
		return UNWIND_UNUSED;
	rules->rules = vec_room(rules->rules, rules->count, sizeof(*rule));
	rules->rules[rules->count] = *rule;
	return rules->count++;
}

uint32_t frame_rules_number(struct frame_rules *rules, const struct wire_rule *rule, int64_t *work)
{
	uint32_t at = hash_of(rule), number;

	for (uint32_t step = 0; step < STEPS_MAX; step++, at = (at + 1) % TABLE_SIZE) {
		--*work;
		if (!rules->table[at]) {
			number = add_rule(rules, rule);
			if (number != UNWIND_UNUSED)
				rules->table[at] = (uint16_t)(number + 1);
			return number;
		}
		number = rules->table[at] - 1u;
		if (memcmp(&rules->rules[number], rule, sizeof(*rule)) == 0)
			return number;
	}
	return UNWIND_UNUSED;
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct wire_rule frame_rule_plain(enum unwind_cfa kind)
{
	return (struct wire_rule){ .cfa_kind = kind };
}

static bool take_s32(int64_t from, int32_t *to)
{
	*to = (int32_t)from;
	return *to == from;
}

static bool take_cfa(const struct cfi_machine *machine, const struct cfi_state *state,
                     struct wire_rule *rule)
{
	bool is_sp = state->cfa_register == machine->sp, is_fp = state->cfa_register == machine->fp;

	switch (state->cfa) {
	case CFI_CFA_REGISTER:
		if (is_sp || is_fp)
			rule->cfa_kind = is_sp ? CFA_SP : CFA_FP;
		else if (machine->elf == EM_X86_64 && state->cfa_register == X86_R10)
			rule->cfa_kind = CFA_R10;
		else
			return false;
		break;
	case CFI_CFA_AT:
		if (!is_sp && !is_fp)
			return false;
		rule->cfa_kind = is_sp ? CFA_AT_SP : CFA_AT_FP;
		rule->add = (int16_t)state->cfa_add;
		if (rule->add != state->cfa_add)
			return false;
		break;
	case CFI_CFA_PLT:
		rule->cfa_kind = CFA_PLT;
		if (machine->elf != EM_X86_64)
			return false;
		break;
	default:
		return false;
	}
	return take_s32(state->cfa_offset, &rule->cfa);
}

static bool take_ra(const struct cfi_machine *machine, const struct cfi_state *state,
                    struct wire_rule *rule)
{
	bool is_x86 = machine->elf == EM_X86_64;

	if (!is_x86 && (state->ra.saved == CFI_UNSAID || state->ra.saved == CFI_SAME)) {
		rule->ra_kind = RA_LR;
		return true;
	}
	rule->ra_kind = RA_CFA;
	return state->ra.saved == CFI_AT_CFA && (!is_x86 || state->ra.offset == X86_RA) &&
	       take_s32(state->ra.offset, &rule->ra);
}

/* A frame pointer that cannot be found again ends no stack: most callers do without. */
static void take_fp(const struct cfi_state *state, struct wire_rule *rule)
{
	rule->fp_kind = FP_SAME;
	if (state->fp.saved == CFI_UNSAID || state->fp.saved == CFI_SAME)
		return;
	rule->fp_kind = state->fp.saved == CFI_AT_CFA  ? FP_CFA
	                : state->fp.saved == CFI_AT_FP ? FP_AT_FP
	                                               : FP_GONE;
	if (rule->fp_kind == FP_GONE || take_s32(state->fp.offset, &rule->fp))
		return;
	rule->fp_kind = FP_GONE;
	rule->fp = 0;
}

bool frame_rule_of(const struct cfi_machine *machine, const struct cfi_state *state,
                   struct wire_rule *rule)
{
	*rule = frame_rule_plain(CFA_STOP);
	if (state->ra.saved == CFI_UNDEFINED)
		return true;
	if (state->sp.saved == CFI_UNSAID && take_cfa(machine, state, rule) &&
	    take_ra(machine, state, rule)) {
		take_fp(state, rule);
		return true;
	}
	*rule = frame_rule_plain(CFA_OTHER);
	return false;
}

/* ---- states that are known ------------------------------------------------------------------- */

bool frame_rules_meet(struct frame_rules *rules, const struct cfi_machine *machine,
                      const struct cfi_state *state, int64_t *work, uint64_t key, uint32_t *number)
{
	struct wire_rule rule;
	bool is_followed = frame_rule_of(machine, state, &rule);

	*number = frame_rules_number(rules, &rule, work);
	if (key && is_followed && *number != UNWIND_UNUSED)
		*frame_rules_known(rules, key) = (struct known_state){ key, *number };
	return is_followed;
}
