// SPDX-License-Identifier: MIT
/*
 * Threads whose calls agents tell of. The programs tell of a thread at its first hit of a probe,
 * which a thread that began after its process was diverted may never have.
 */
#include "capture/inside/inside_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "capture/proc.h"

#define MET_MAX 16384 /* of the others calls are told, but not the names */

static bool meet(struct inside *inside, uint32_t tid, uint32_t pid)
{
	struct inside_met **recent = &inside->met_recent[tid % MET_RECENT], *met;

	if (inside_was_met(inside, tid, pid))
		return false;
	met = MAP_FIND(inside->met, &tid);
	if (met)
		*recent = met;
	if (met && met->pid == pid)
		return false;
	if (met) { /* its number was given out again */
		met->pid = pid;
		return true;
	}
	if (HASH_COUNT(inside->met) >= MET_MAX)
		return false;
	met = MAP_ADD(inside->met, tid, &tid);
	met->pid = pid;
	return true;
}

void inside_threads_forget(struct inside *inside, uint32_t pid)
{
	struct inside_met *met, *next;

	memset(inside->met_recent, 0, sizeof(inside->met_recent));
	HASH_ITER (hh, inside->met, met, next) {
		if (pid && met->pid != pid)
			continue;
		MAP_DROP(inside->met, met);
	}
}

bool inside_meets_thread(struct inside *inside, const struct wire_head *record,
                         struct wire_process *thread)
{
	if (record->type == WIRE_THREAD)
		meet(inside, record->tid, record->tgid);
	else if (record->type == WIRE_EXIT || record->type == WIRE_EXEC)
		inside_threads_forget(inside, record->tgid);
	if (record->type != WIRE_CALL || !(record->flags & WIRE_BY_AGENT) ||
	    !meet(inside, record->tid, record->tgid))
		return false;
	*thread = (struct wire_process){ .head = { .type = WIRE_THREAD,
		                                   .tgid = record->tgid,
		                                   .tid = record->tid,
		                                   .time_ns = record->time_ns } };
	proc_thread_comm((pid_t)record->tgid, (pid_t)record->tid, thread->comm);
	return true;
}
