/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions, in the shapes that call frame information has them: those of linkers for the
 * PLT, those of compilers for functions that align their stack, those of assembly code that keeps
 * the caller's stack pointer in memory. Others are told as such, and nothing is computed.
 */
#ifndef CUSCOPE_UNWIND_CFI_EXPRESSION_H
#define CUSCOPE_UNWIND_CFI_EXPRESSION_H

#include "unwind/cfi_program.h"

/* Sets what the expression says of the CFA. */
void cfi_expression_cfa(struct cfi_bytes expression, struct cfi_state *state);

/* Where a register is, by an expression that gives the address. */
struct cfi_place cfi_expression_place(const struct cfi_machine *machine,
                                      struct cfi_bytes expression);

#endif
