/* SPDX-License-Identifier: MIT */
/*
 * The rule of one address of an ELF file, where frame_rows.h makes those of all: a few stacks are
 * walked in user space without compiling every file that they pass. The table by which the loader
 * finds a function's entry (PT_GNU_EH_FRAME) finds it here too, so nothing is read twice.
 *
 * Files are those of untrusted programs and are read as elf_image.h says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire_unwind.h"
#include "probe/elf_image.h"
#include "unwind/cfi_program.h"

struct frame_find {
	const struct cfi_machine *machine;
	struct cfi_section section;
	const uint8_t *table; /* pairs of 4 bytes: a function's begin, and its entry */
	size_t count;
	uint64_t from; /* both count from here */
	size_t bytes;  /* of memory */
};

/* False where there is no such table, or all of it takes more than `most` bytes. */
bool frame_find_read(const struct elf_image *image, size_t most, struct frame_find *find);
void frame_find_free(struct frame_find *find);

/* Of an address as linked. False where no rule is known. */
bool frame_find_rule(const struct frame_find *find, uint64_t address, struct wire_rule *rule);

/* ---- frame section ------------------------------------------------------------------------- */

/*
 * Where an ELF file has its call frame information, and the bytes of it.
 *
 * .eh_frame is in memory with the code, for exceptions, and so in all files that compilers make for
 * x86-64 and AArch64, stripped or not. Assembly code may have .debug_frame only.
 */

struct frame_section {
	uint64_t offset, bytes; /* in the file */
	uint64_t address;       /* as linked */
	bool debug;
	bool ends_at_zero; /* what follows it may be something else */
};

/*
 * .eh_frame by its section header, else by PT_GNU_EH_FRAME, as the loader finds it: then it may
 * reach as far as its segment. False where there is none.
 */
bool frame_section_find(const struct elf_image *image, struct frame_section *found);

/* .debug_frame; false where there is none, or one that is compressed. */
bool frame_section_find_debug(const struct elf_image *image, struct frame_section *found);

/*
 * Reads its first `bytes` for cfi_program.h; the caller frees section->data. False where the file
 * does not hold them any more.
 */
bool frame_section_read(const struct elf_image *image, const struct frame_section *found,
                        size_t bytes, struct cfi_section *section);

/* ---- frame rules --------------------------------------------------------------------------- */

/*
 * The different rules of one file. Hundreds of thousands of rows have a few hundred of them, so a
 * row holds a number.
 */

#define FRAME_STATE_BITS 10 /* of states that are known: files have up to 800 rules */

/* A state as one number, which is never 0, and the number of its rule. */
struct known_state {
	uint64_t key;
	uint32_t number;
};

struct frame_rules {
	struct wire_rule *rules;
	uint32_t count;
	uint16_t *table; /* by hash: number + 1, 0 for none */
	struct known_state *states;
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

/* ---- states that are known ------------------------------------------------------------------- */

/*
 * All of a state that a rule is made of, where its numbers are small, as they are in what compilers
 * write; else 0.
 */
static inline uint64_t frame_rules_key(const struct cfi_state *state)
{
	uint64_t cfa = (uint64_t)state->cfa_offset;
	uint64_t fp = (uint64_t)state->fp.offset + 0x8000;
	uint64_t ra = (uint64_t)state->ra.offset + 0x1000;

	if (state->cfa != CFI_CFA_REGISTER || state->sp.saved != CFI_UNSAID ||
	    state->cfa_register >> 5 || cfa >> 24 || fp >> 16 || ra >> 13)
		return 0;
	return state->cfa_register | (uint64_t)state->fp.saved << 5 |
	       (uint64_t)state->ra.saved << 8 | cfa << 11 | fp << 35 | ra << 51;
}

static inline struct known_state *frame_rules_known(struct frame_rules *rules, uint64_t key)
{
	return &rules->states[key * 0x9e3779b97f4a7c15ull >> (64 - FRAME_STATE_BITS)];
}

/* The rule of a state that is not known; false where it is CFA_NONE. It is known then. */
bool frame_rules_meet(struct frame_rules *rules, const struct cfi_machine *machine,
                      const struct cfi_state *state, int64_t *work, uint64_t key, uint32_t *number);

/*
 * frame_rule_of() and frame_rules_number() at once, of the same machine each time. Almost all
 * states of a file were met before, and are found without making a rule of them: each row asks
 * here.
 */
static inline bool frame_rules_of(struct frame_rules *rules, const struct cfi_machine *machine,
                                  const struct cfi_state *state, int64_t *work, uint32_t *number)
{
	uint64_t key = frame_rules_key(state);
	const struct known_state *known = frame_rules_known(rules, key);

	if (!key || known->key != key)
		return frame_rules_meet(rules, machine, state, work, key, number);
	*number = known->number;
	return true;
}
