/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * What the files of the stand-in's nvidia-uvm.ko share. Layouts of what is handed to
 * uvm_perf_event_notify() are those of the driver that this stands in for (STANDIN_VERSION), for
 * what tracers read of them.
 */
#ifndef UVM_H
#define UVM_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mutex.h>

#include "standin.h"

#define UVM_FD_VA_SPACE 2 /* in the low bits of private_data: the rest is a va_space */

typedef struct {
	u32 val; /* 0: the host, else a GPU's index + 1 */
} uvm_processor_id_t;

typedef struct {
	u64 fault_address;
	u64 timestamp;
} uvm_fault_buffer_entry_t;

enum {
	UVM_PERF_EVENT_FAULT = 6,
	UVM_PERF_EVENT_MIGRATION = 7,
};

enum { /* causes of a migration */
       CAUSE_REPLAYABLE_FAULT = 0,
       CAUSE_EVICTION = 4,
       CAUSE_API_MIGRATE = 6,
};

typedef union {
	struct {
#ifdef STANDIN_OLD
		void *space;
#endif
		void *block;
		uvm_processor_id_t proc_id, preferred_location;
		union {
			struct {
				uvm_fault_buffer_entry_t *buffer_entry;
				u32 batch_id;
				bool is_duplicate;
			} gpu;
			struct {
				u64 fault_va;
#ifndef STANDIN_OLD
				u32 access;
#endif
				__aligned(4) bool is_write;
				u64 pc;
			} cpu;
		};
	} fault;
	struct {
		void *push;
		void *block;
		uvm_processor_id_t dst, src;
		s32 dst_node, src_node;
		u64 address;
		u64 bytes;
		u32 transfer_mode; /* 1: moved, 2: copied */
#ifndef STANDIN_OLD
		u32 counters;
#endif
		u32 cause;
	} migration;
} uvm_perf_event_data_t;

typedef struct {
	u64 notified;
	void *va_space;
} uvm_perf_va_space_events_t;

typedef struct uvm_va_space_struct {
	struct mutex lock;
	u64 unused[37]; /* so that what follows is somewhere within */
	uvm_perf_va_space_events_t perf_events;
} uvm_va_space_t;

uvm_va_space_t *uvm_space_of(struct file *file); /* NULL: not initialized */

/* uvm_gpu.c: what ioctls of the type 'S' ask for. 0 or -errno. */
long standin_gpu(uvm_va_space_t *space, unsigned int cmd, const struct standin_gpu *ask);
void standin_migration(uvm_va_space_t *space, u32 dst, u32 src, u64 address, u64 bytes, u32 cause);

void uvm_perf_event_notify(uvm_perf_va_space_events_t *events, u32 event,
                           uvm_perf_event_data_t *data);
int uvm_va_space_cpu_fault_managed(uvm_va_space_t *space, struct vm_fault *fault);
int uvm_va_block_cpu_fault(void *block, u64 address, bool write, void *context);
int uvm_api_migrate(struct uvm_migrate *params, struct file *file);
int uvm_va_block_evict_chunks(void *block, void *gpu, void *chunk, void *tracker);
#ifdef STANDIN_OLD
void uvm_gpu_service_replayable_faults(void *gpu);
void uvm_tools_record_block_migration_begin(uvm_va_space_t *space, void *push, u32 dst, u32 src,
                                            u64 address, u32 cause);
#define service_replayable_faults uvm_gpu_service_replayable_faults
#define record_migration_begin    uvm_tools_record_block_migration_begin
#else
void uvm_parent_gpu_service_replayable_faults(void *gpu);
void uvm_tools_record_migration_begin(uvm_va_space_t *space, void *push, u32 dst, int dst_node,
                                      u32 src, int src_node, u64 address, u32 cause);
#define service_replayable_faults uvm_parent_gpu_service_replayable_faults
#endif
void uvm_tools_record_gpu_fatal_fault(u32 gpu, uvm_va_space_t *space,
                                      const uvm_fault_buffer_entry_t *entry, u32 reason);
void uvm_tools_record_thrashing(uvm_va_space_t *space, u64 address, u64 size,
                                const void *processors);
void uvm_tools_record_throttling_start(uvm_va_space_t *space, u64 address, u32 processor);
void uvm_tools_record_throttling_end(uvm_va_space_t *space, u64 address, u32 processor);

#endif
