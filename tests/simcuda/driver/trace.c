// SPDX-License-Identifier: MIT
#include "trace.h"

#include <stdlib.h>

#include "block.h"
#include "clock.h"
#include "graph.h"
#include "module.h"

/* What a kernel of which nothing is known takes. */
#define REGISTERS 32

/* ---- the door -------------------------------------------------------------------------------- */

static void install(const struct sim_hooks *hooks)
{
	__atomic_store_n(&simcuda_profiler.hooks, hooks, __ATOMIC_RELEASE);
	gate_hook(hooks != NULL);
}

static void *current(uint32_t *number)
{
	CUcontext ctx = context_current();
	*number = ctx ? (uint32_t)ctx->id : 0;
	return ctx;
}

static uint32_t context_number(const void *handle)
{
	return handle_is(handle, HANDLE_CONTEXT) ? (uint32_t)((const struct CUctx_st *)handle)->id
	                                         : 0;
}

static const char *kernel_name(const void *handle)
{
	if (handle_is(handle, HANDLE_FUNCTION))
		return ((const struct CUfunc_st *)handle)->kept_name;
	if (handle_is(handle, HANDLE_KERNEL))
		return ((const struct CUkern_st *)handle)->kept_name;
	return NULL;
}

__attribute__((visibility("default"))) struct sim_profiler simcuda_profiler = {
	.install = install,
	.context = current,
	.context_number = context_number,
	.kernel_name = kernel_name,
};

/* ---- tasks ----------------------------------------------------------------------------------- */

static enum sim_memory memory_of(const void *address, const struct block **found,
                                 struct block *block)
{
	*found = NULL;
	if (!block_find((uint64_t)address, 1, BLOCK_ON_DEVICE | BLOCK_PINNED, block))
		return SIM_PAGEABLE;
	*found = block;
	if (block->kind & BLOCK_PINNED)
		return SIM_PINNED;
	if (block->kind == BLOCK_MANAGED)
		return SIM_MANAGED;
	if (block->kind == BLOCK_ARRAY)
		return SIM_ARRAY;
	return block->kind == BLOCK_GLOBAL ? SIM_STATIC : SIM_DEVICE;
}

static void end_of_copy(const void *address, enum sim_memory *memory, uint32_t *device,
                        uint32_t *context)
{
	struct block block;
	const struct block *found;
	*memory = memory_of(address, &found, &block);
	if (found && handle_is(block.ctx, HANDLE_CONTEXT)) {
		*device = (uint32_t)block.ctx->device;
		*context = (uint32_t)block.ctx->id;
	}
}

static void copy_work(const struct task *task, bool async, struct sim_work *work)
{
	work->kind = SIM_COPY;
	work->copy.bytes = task->copy.width * task->copy.height * task->copy.depth;
	work->copy.async = async;
	work->copy.from_device = work->copy.to_device = work->device;
	work->copy.from_context = work->copy.to_context = work->context;
	end_of_copy(task->copy.from, &work->copy.from, &work->copy.from_device,
	            &work->copy.from_context);
	end_of_copy(task->copy.to, &work->copy.to, &work->copy.to_device, &work->copy.to_context);
	work->copy.peer = work->copy.from == SIM_DEVICE && work->copy.to == SIM_DEVICE &&
	                  work->copy.from_device != work->copy.to_device;
}

static void kernel_work(const struct task *task, struct sim_work *work)
{
	work->kind = SIM_KERNEL;
	work->kernel.name = task->kernel.name;
	work->kernel.registers = REGISTERS;
	work->kernel.shared_bytes = task->kernel.shared_bytes;
	work->kernel.cooperative = task->kernel.cooperative;
	for (int i = 0; i < 3; i++) {
		work->kernel.grid[i] = task->kernel.grid[i];
		work->kernel.block[i] = task->kernel.block[i];
	}
}

/* False where the device has nothing to do for the task. */
static bool task_work(const struct task *task, bool async, struct sim_work *work)
{
	struct block block;
	const struct block *found;
	switch (task->kind) {
	case TASK_KERNEL:
		kernel_work(task, work);
		return true;
	case TASK_COPY:
		copy_work(task, async, work);
		return true;
	case TASK_SET:
		work->kind = SIM_SET;
		work->set.bytes = task->set.width * task->set.height * task->set.element;
		work->set.value = task->set.value;
		work->set.async = async;
		work->set.to = memory_of(task->set.to, &found, &block);
		return true;
	default:
		return false;
	}
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* The nodes of a plan, those of its child graphs in their places. */
static size_t plan_works(const struct plan *plan)
{
	size_t n = 0;
	for (size_t i = 0; i < plan_tasks(plan); i++) {
		const struct task *task = plan_task(plan, i);
		struct sim_work work;
		n += task->kind == TASK_GRAPH ? plan_works(task->plan)
		                              : task_work(task, true, &work);
	}
	return n;
}

/* Numbers of a plan's nodes, those of its child graphs in their places. */
static uint64_t node_number(uint32_t graph, uint64_t node)
{
	return (uint64_t)graph << 32 | node;
}

static struct sim_work *fill_works(const struct plan *plan, const struct sim_work *run,
                                   uint64_t *node, struct sim_work *work)
{
	for (size_t i = 0; i < plan_tasks(plan); i++) {
		const struct task *task = plan_task(plan, i);
		++*node;
		if (task->kind == TASK_GRAPH) {
			work = fill_works(task->plan, run, node, work);
			continue;
		}
		*work = *run;
		if (!task_work(task, true, work))
			continue;
		work->graph_node = node_number(run->graph, *node);
		work++;
	}
	return work;
}

static void tell_nodes(const struct plan *plan, uint32_t graph, const struct sim_hooks *hooks,
                       uint64_t *node)
{
	for (size_t i = 0; i < plan_tasks(plan); i++) {
		++*node;
		hooks->node_made(node_number(graph, *node), plan_origin(plan, i));
		if (plan_task(plan, i)->kind == TASK_GRAPH)
			tell_nodes(plan_task(plan, i)->plan, graph, hooks, node);
	}
}

static struct sim_span *fill_spans(const struct plan *plan, uint64_t *at, uint64_t least,
                                   struct sim_span *span)
{
	for (size_t i = 0; i < plan_tasks(plan); i++) {
		const struct task *task = plan_task(plan, i);
		struct sim_work work;
		if (task->kind == TASK_GRAPH) {
			span = fill_spans(task->plan, at, least, span);
			continue;
		}
		if (!task_work(task, true, &work))
			continue;
		uint64_t ns = task_duration_ns(task);
		span->begin_ns = *at;
		span->end_ns = *at += ns > least ? ns : least;
		span++;
	}
	return span;
}

static void *submit_graph(const struct task *task, const struct sim_hooks *hooks,
                          const struct sim_work *run)
{
	size_t n = 1 + plan_works(task->plan);
	/* One more: the last node may be none of the device's, and is written before it
	 * is known. */
	struct sim_work *work = calloc(n + 1, sizeof(*work));
	if (!work)
		return NULL;
	uint64_t node = 0;
	work[0] = *run;
	work[0].kind = SIM_GRAPH;
	work[0].graph = plan_number(task->plan);
	work[0].made_before = !plan_was_hooked(task->plan);
	work[0].made_ns = plan_made_ns(task->plan);
	fill_works(task->plan, &work[0], &node, &work[1]);
	void *trace = hooks->submit(work, n);
	free(work);
	return trace;
}

static void end_graph(const struct task *task, const struct sim_hooks *hooks, uint64_t begin_ns,
                      uint64_t end_ns)
{
	size_t n = plan_works(task->plan);
	struct sim_span *span = calloc(n + 1, sizeof(*span));
	if (!span) {
		hooks->cancelled(task->trace);
		return;
	}
	uint64_t at = begin_ns;
	/* In instant mode nodes take what the run took, in equal parts. */
	fill_spans(task->plan, &at, clock_is_instant() && n ? (end_ns - begin_ns) / n : 1,
	           &span[1]);
	span[0] = (struct sim_span){ begin_ns, at > end_ns ? at : end_ns };
	hooks->ended(task->trace, span, n + 1);
	free(span);
}

/* ---- what streams call ----------------------------------------------------------------------- */

void trace_submit(struct task *task, CUstream stream, bool async)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	task->trace = NULL;
	if (!hooks)
		return;
	struct sim_work work = { .device = (uint32_t)stream->ctx->device,
		                 .context = (uint32_t)stream->ctx->id,
		                 .stream = stream->number };
	if (task->kind == TASK_GRAPH)
		task->trace = submit_graph(task, hooks, &work);
	else if (task_work(task, async, &work))
		task->trace = hooks->submit(&work, 1);
}

/* A profiler that went away meanwhile has forgotten about the task. */
void trace_cancel(const struct task *task)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	if (task->trace && hooks)
		hooks->cancelled(task->trace);
}

void trace_end(const struct task *task, uint64_t begin_ns, uint64_t end_ns)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	if (!task->trace || !hooks)
		return;
	if (task->kind == TASK_GRAPH) {
		end_graph(task, hooks, begin_ns, end_ns);
		return;
	}
	struct sim_span span = { begin_ns, end_ns };
	hooks->ended(task->trace, &span, 1);
}

void trace_instantiated(void)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	if (hooks)
		hooks->instantiated();
}

void trace_context_ends(CUcontext ctx)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	if (hooks)
		hooks->context_ends(ctx);
}

void trace_context_made(CUcontext ctx)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	if (hooks)
		hooks->context_made(ctx);
}

void trace_module_loaded(CUcontext ctx)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	if (hooks)
		hooks->module_loaded(ctx);
}

void trace_node_made(uint64_t node, uint64_t original)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	if (hooks)
		hooks->node_made(node, original);
}

void trace_planned(const struct plan *plan)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	uint64_t node = 0;
	if (hooks)
		tell_nodes(plan, plan_number(plan), hooks, &node);
}

uint64_t trace_now(void)
{
	return trace_wanted() ? clock_now_ns() : 0;
}

void trace_waited(enum sim_wait_kind kind, uint64_t begin_ns, uint32_t context, uint32_t stream,
                  uint32_t event, CUresult result)
{
	const struct sim_hooks *hooks = profiler_hooks(&simcuda_profiler);
	if (!begin_ns || !hooks)
		return;
	struct sim_wait wait = { .kind = kind,
		                 .context = context,
		                 .stream = stream,
		                 .event = event,
		                 .result = (uint32_t)result,
		                 .span = { begin_ns, clock_now_ns() } };
	hooks->waited(&wait);
}
