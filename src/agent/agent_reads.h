/* SPDX-License-Identifier: MIT */
/*
 * Whether the agent in a process may have it read its own memory by process_vm_readv. That is how
 * it reads what a pointer leads to. A seccomp filter may end the process for it.
 *
 * A filter that a thread takes on later is not seen. One that ends its process for a call that only
 * reads the process itself has not been met.
 */
#ifndef CUSCOPE_AGENT_AGENT_READS_H
#define CUSCOPE_AGENT_AGENT_READS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * `asked`: filters of one of its threads were run, and let the call pass. Then it may where all
 * threads that have filters have as many. Else only where no thread has one.
 */
bool agent_may_read(pid_t pid, bool asked);

#endif
