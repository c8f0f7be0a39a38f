/* SPDX-License-Identifier: MIT */
/* What a thread waited for, from what the programs saw of it as it left the CPU. */
#ifndef CUSCOPE_CAPTURE_STACKS_WAIT_OF_H
#define CUSCOPE_CAPTURE_STACKS_WAIT_OF_H

#include "bpf/wire_stacks.h"
#include "trace/stack.h"

/* `stack`: in which it waited; NULL: not known. Of 32-bit programs the calls are not known. */
enum wait_kind wait_of(const struct wire_blocked *record, const struct stack *stack);

#endif
