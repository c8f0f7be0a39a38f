// SPDX-License-Identifier: (GPL-2.0 OR MIT)
/* What a GPU would make the driver do, on a thread of the kernel's as there: nobody's process. */
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/workqueue.h>

#include "uvm.h"

#define COUNT_MAX 100000

struct gpu_work {
	struct work_struct work;
	uvm_va_space_t *space;
	unsigned int cmd;
	const struct standin_gpu *ask;
};

/* ---- functions that tracers hook ----------------------------------------------------------- */

#ifdef STANDIN_OLD
noipa void uvm_tools_record_block_migration_begin(uvm_va_space_t *space, void *push, u32 dst,
                                                  u32 src, u64 address, u32 cause)
{
	barrier();
}
#else
noipa void uvm_tools_record_migration_begin(uvm_va_space_t *space, void *push, u32 dst,
                                            int dst_node, u32 src, int src_node, u64 address,
                                            u32 cause)
{
	barrier();
}
#endif

noipa void uvm_tools_record_gpu_fatal_fault(u32 gpu, uvm_va_space_t *space,
                                            const uvm_fault_buffer_entry_t *entry, u32 reason)
{
	barrier();
}

noipa void uvm_tools_record_thrashing(uvm_va_space_t *space, u64 address, u64 size,
                                      const void *processors)
{
	barrier();
}

noipa void uvm_tools_record_throttling_start(uvm_va_space_t *space, u64 address, u32 processor)
{
	barrier();
}

noipa void uvm_tools_record_throttling_end(uvm_va_space_t *space, u64 address, u32 processor)
{
	barrier();
}

noipa int uvm_va_block_evict_chunks(void *block, void *gpu, void *chunk, void *tracker)
{
	struct gpu_work *work = block;
	const struct standin_gpu *ask = work->ask;

	standin_migration(work->space, 0, 1, *(u64 *)chunk, ask->bytes, CAUSE_EVICTION);
	return RM_OK;
}

void standin_migration(uvm_va_space_t *space, u32 dst, u32 src, u64 address, u64 bytes, u32 cause)
{
	uvm_perf_event_data_t data = { .migration = { .dst = { dst },
		                                      .src = { src },
		                                      .address = address,
		                                      .bytes = bytes,
		                                      .transfer_mode = 1,
		                                      .cause = cause } };

#ifdef STANDIN_OLD
	uvm_tools_record_block_migration_begin(space, NULL, dst, src, address, cause);
#else
	uvm_tools_record_migration_begin(space, NULL, dst, -1, src, -1, address, cause);
#endif
	uvm_perf_event_notify(&space->perf_events, UVM_PERF_EVENT_MIGRATION, &data);
}

/* ---- one ask ------------------------------------------------------------------------------- */

static u64 address_of(const struct standin_gpu *ask, u32 i)
{
	return ask->address + i * ask->step;
}

/* A batch of faults, each of which brings its memory to the GPU. */
noipa void service_replayable_faults(void *gpu)
{
	struct gpu_work *work = gpu;
	u32 i;

	for (i = 0; i < work->ask->count; i++) {
		uvm_fault_buffer_entry_t entry = { address_of(work->ask, i), ktime_get_ns() };
		uvm_perf_event_data_t data = { .fault = { .proc_id = { 1 } } };

		data.fault.gpu.buffer_entry = &entry;
		data.fault.gpu.batch_id = 1;
		uvm_perf_event_notify(&work->space->perf_events, UVM_PERF_EVENT_FAULT, &data);
		if (work->ask->bytes)
			standin_migration(work->space, 1, 0, entry.fault_address, work->ask->bytes,
			                  CAUSE_REPLAYABLE_FAULT);
	}
}

static void replayable_faults_isr_bottom_half_entry(struct gpu_work *work)
{
	service_replayable_faults(work);
}

static void thrash(struct gpu_work *work, u64 address)
{
	u64 processors = 3;

	uvm_tools_record_thrashing(work->space, address, work->ask->bytes, &processors);
	uvm_tools_record_throttling_start(work->space, address, 1);
	uvm_tools_record_throttling_end(work->space, address, 1);
}

static void each(struct gpu_work *work, u64 address)
{
	uvm_fault_buffer_entry_t entry = { address, 0 };

	switch (work->cmd) {
	case STANDIN_EVICTIONS:
		uvm_va_block_evict_chunks(work, NULL, &address, NULL);
		break;
	case STANDIN_THRASHING:
		thrash(work, address);
		break;
	case STANDIN_FATAL:
		uvm_tools_record_gpu_fatal_fault(1, work->space, &entry, 1);
		break;
	}
}

static void on_kernel_thread(struct work_struct *item)
{
	struct gpu_work *work = container_of(item, struct gpu_work, work);
	u32 i;

	if (work->cmd == STANDIN_FAULTS) {
		replayable_faults_isr_bottom_half_entry(work);
		return;
	}
	for (i = 0; i < work->ask->count; i++)
		each(work, address_of(work->ask, i));
}

long standin_gpu(uvm_va_space_t *space, unsigned int cmd, const struct standin_gpu *ask)
{
	struct gpu_work work = { .space = space, .cmd = cmd, .ask = ask };

	if (ask->count > COUNT_MAX)
		return -EINVAL;
	if (cmd != STANDIN_FAULTS && cmd != STANDIN_EVICTIONS && cmd != STANDIN_THRASHING &&
	    cmd != STANDIN_FATAL)
		return -EINVAL;
	INIT_WORK_ONSTACK(&work.work, on_kernel_thread);
	schedule_work(&work.work);
	flush_work(&work.work);
	destroy_work_on_stack(&work.work);
	return 0;
}
