/* SPDX-License-Identifier: MIT */
/*
 * Runs the programs of call frame information (DWARF 5, section 6.4.2). A program goes through a
 * function from its begin to its end, and tells for each stretch where the caller's registers are.
 * Of these only what stacks are walked by is kept: the CFA, the frame pointer, the return address.
 */
#ifndef CUSCOPE_UNWIND_CFI_PROGRAM_H
#define CUSCOPE_UNWIND_CFI_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/cfi_entry.h"

/* The numbers that DWARF gives to registers. */
struct cfi_machine {
	uint16_t elf; /* EM_* */
	uint8_t fp, sp, ra;
};

/* NULL for a machine (EM_*) whose stacks are not walked here. */
const struct cfi_machine *cfi_machine_of(uint16_t elf);

enum cfi_cfa {
	CFI_CFA_UNSAID,
	CFI_CFA_REGISTER, /* register + offset */
	CFI_CFA_AT,       /* *(register + offset) + add */
	CFI_CFA_PLT,      /* sp + 8, and 8 more where the address's last four bits are >= offset */
	CFI_CFA_OTHER,    /* an expression that is not understood */
};

enum cfi_saved {
	CFI_UNSAID,
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_AT_CFA, /* *(CFA + offset) */
	CFI_AT_FP,  /* *(frame pointer + offset) */
	CFI_OTHER,
};

struct cfi_place {
	enum cfi_saved saved;
	int64_t offset;
};

struct cfi_state {
	enum cfi_cfa cfa;
	uint64_t cfa_register;
	int64_t cfa_offset, cfa_add;
	struct cfi_place fp, ra;
	struct cfi_place sp; /* CFI_UNSAID: it is the CFA, as almost everywhere */
};

/* A stretch of code, [from, to), and what holds there; false ends the run. */
typedef bool cfi_row(void *data, uint64_t from, uint64_t to, const struct cfi_state *state);

struct cfi_run {
	const struct cfi_machine *machine;
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct cfi_bytes program;
	uint64_t at, end;                /* where the function begins and ends */
	const struct cfi_state *initial; /* what the CIE's program made; NULL while it runs */
	cfi_row *row;                    /* NULL: no rows are wanted */
	void *data;
	int64_t *work; /* each instruction takes 1; where nothing is left the run ends */
};

/*
 * Begins with `state` and leaves what holds at the end there. False where the program makes no
 * sense, or there was no work left: run->at is then where what it said last began, and nothing is
 * known from there on.
 */
bool cfi_run(struct cfi_run *run, struct cfi_state *state);

#endif
