// SPDX-License-Identifier: MIT
#include "busy.h"

#include <pthread.h>

#include "../busy_log.h"
#include "stream.h"

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static struct busy_log *busy;

static void open_log(void)
{
	busy = busy_log_open();
}

void busy_note(const struct task *task, CUstream stream, uint64_t begin_ns, uint64_t end_ns)
{
	pthread_once(&opened, open_log);
	if (!busy || end_ns <= begin_ns)
		return;
	if (task->kind != TASK_KERNEL && task->kind != TASK_GRAPH && task->kind != TASK_COPY &&
	    task->kind != TASK_SET)
		return;

	uint64_t at = __atomic_fetch_add(&busy->n, 1, __ATOMIC_RELAXED);
	struct busy_entry *entry = &busy->entries[at % BUSY_ENTRIES];
	__atomic_store_n(&entry->end_ns, 0, __ATOMIC_RELEASE);
	entry->begin_ns = begin_ns;
	entry->device = (uint32_t)stream->ctx->device;
	entry->copies = task->kind == TASK_COPY;
	__atomic_store_n(&entry->end_ns, end_ns, __ATOMIC_RELEASE);
}
