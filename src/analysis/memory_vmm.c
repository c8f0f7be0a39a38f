// SPDX-License-Identifier: MIT
/* Memory that is mapped to addresses: it lives as long as it is, whatever became of its handle. */
#include "analysis/memory_inside.h"

static struct allocation *find_handle(struct process_memory *process, uint64_t handle)
{
	const struct memory_key key = { handle, SPACE_HANDLE };
	struct allocation *a = memory_find(process, &key);

	return a && !a->late ? a : NULL;
}

/* The memory of the addresses is held once less, unless its handle is that of other memory now. */
static uint64_t forget_mapping(struct memory *memory, struct process_memory *process,
                               struct allocation *mapping, uint64_t now_ns)
{
	struct allocation *a = find_handle(process, mapping->handle);
	bool same = a && a->about.time_ns == mapping->made_ns;

	memory_drop(memory, process, mapping);
	return same ? memory_give_back(memory, process, a, now_ns) : 0;
}

/* What was mapped there before was unmapped by a call that is not over yet, or was not seen. */
static uint64_t map(struct memory *memory, struct process_memory *process,
                    const struct event *event)
{
	const struct memory_allocation wanted = memory_about(event, MEMORY_NONE);
	const struct memory_key key = { wanted.address, SPACE_MAPPED };
	struct allocation *of = find_handle(process, event->call->args.source);
	struct allocation *old = memory_find(process, &key), *mapping;
	uint64_t freed = 0;

	if (of)
		of->held++;
	if (old)
		freed = forget_mapping(memory, process, old, event->time_ns);
	if (!of)
		return freed; /* not known: nothing is, of what it lives for */
	if (!wanted.bytes || memory->n_allocations >= ALLOCATIONS_MAX) {
		of->held--;
		return freed;
	}
	mapping = memory_keep(memory, process, &key, &wanted);
	mapping->handle = of->key.address;
	mapping->made_ns = of->about.time_ns;
	return freed;
}

/* All mappings from its address on, one after the other, that were there when it began. */
static uint64_t unmap(struct memory *memory, struct process_memory *process,
                      const struct event *event)
{
	uint64_t address = event->call->args.address, at = 0, freed = 0;

	while (at < event->call->args.bytes) {
		const struct memory_key key = { address + at, SPACE_MAPPED };
		struct allocation *mapping = memory_find(process, &key);

		if (!mapping || mapping->about.time_ns > event->call->begin_ns)
			break;
		if (__builtin_add_overflow(at, mapping->about.bytes, &at))
			at = UINT64_MAX;
		freed += forget_mapping(memory, process, mapping, event->time_ns);
	}
	return freed;
}

/* Of memory of another process nothing is known but that its handle is to be given back. */
static void retain(struct memory *memory, struct process_memory *process, const struct event *event)
{
	const struct memory_allocation wanted = memory_about(event, MEMORY_VMM);
	const struct memory_key key = { wanted.address, SPACE_HANDLE };
	struct allocation *a = memory_find(process, &key);

	if (a && !a->late) {
		a->held++;
		return;
	}
	if (a)
		memory_drop(memory, process, a);
	if (wanted.address && memory->n_allocations < ALLOCATIONS_MAX)
		memory_keep(memory, process, &key, &wanted);
}

uint64_t memory_follow_vmm(struct memory *memory, const struct event *event)
{
	struct process_memory *process = memory_find_process(memory, event->process->id);

	switch (event->call->op) {
	case OP_MAP:
		return map(memory, process, event);
	case OP_UNMAP:
		return unmap(memory, process, event);
	case OP_RETAIN:
		retain(memory, memory_the_process(memory, event->process), event);
		return 0;
	default:
		return 0;
	}
}
