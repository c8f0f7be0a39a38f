/* SPDX-License-Identifier: MIT */
/*
 * Whether anything in a function leads into its first bytes, or reads them. The whole body is
 * decoded twice: from one end to the other, and along its branches from the entry on. Where both
 * agree there is one reading; where they differ, the harms of both are taken.
 */
#ifndef CUSCOPE_DIVERT_ENTRY_BODY_H
#define CUSCOPE_DIVERT_ENTRY_BODY_H

#include "divert/entry_move.h"

/*
 * Of the first `taken` bytes, of which the jump will lie at `skip`. A call of the entry, or of what
 * lies behind its endbr64, is recursion and harmless; a jump there is a loop and is not. *at is
 * the offset of the instruction that a refusal is about.
 */
enum entry_refusal entry_body_check(const uint8_t *code, size_t size, uint32_t skip, uint32_t taken,
                                    uint32_t *at);

#endif
