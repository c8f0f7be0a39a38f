// SPDX-License-Identifier: MIT
/* ioctls of /dev/nvidiactl and /dev/nvidia0.., by the number in their lowest byte. */
#include "base/array.h"
#include "nvidia/tables.h"

/* ---- ioctls uvm ---------------------------------------------------------------------------- */

/* ioctls of /dev/nvidia-uvm and -uvm-tools: the command is the number. */

#define NONE  NVIDIA_NO_STATUS, 0, 0, 0, DETAIL_NONE, 0
#define AT(n) n, 0, 0, 0, DETAIL_NONE, 0
#define RANGE "base:addr@0 length:size@8"

const struct nvidia_ioctl nvidia_uvm_ioctls[] = {
	{ 1, "UVM_RESERVE_VA", AT(16), RANGE },
	{ 2, "UVM_RELEASE_VA", AT(16), RANGE },
	{ 20, "UVM_GET_GPU_UUID_TABLE", NONE, "" },
	{ 23, "UVM_CREATE_RANGE_GROUP", AT(8), "group:*u64@0" },
	{ 24, "UVM_DESTROY_RANGE_GROUP", AT(8), "group:u64@0" },
	{ 25, "UVM_REGISTER_GPU_VASPACE", AT(28),
	  "gpu:processor@0 fd:int@16 client:handle@20 vaspace:handle@24" },
	{ 26, "UVM_UNREGISTER_GPU_VASPACE", AT(16), "gpu:processor@0" },
	{ 27, "UVM_REGISTER_CHANNEL", AT(48),
	  "gpu:processor@0 fd:int@16 client:handle@20 channel:handle@24 base:addr@32 "
	  "length:size@40" },
	{ 28, "UVM_UNREGISTER_CHANNEL", 24, 0, 0, 589, DETAIL_NONE, 0,
	  "gpu:processor@0 client:handle@16 channel:handle@20" },
	{ 28, "UVM_UNREGISTER_CHANNEL", 8, 0, 590, 0, DETAIL_NONE, 0,
	  "client:handle@0 channel:handle@4" },
	{ 29, "UVM_ENABLE_PEER_ACCESS", AT(32), "gpu:processor@0" },
	{ 30, "UVM_DISABLE_PEER_ACCESS", AT(32), "gpu:processor@0" },
	{ 31, "UVM_SET_RANGE_GROUP", AT(24), "group:u64@0 base:addr@8 length:size@16" },
	{ 33, "UVM_MAP_EXTERNAL_ALLOCATION", 1196, 0, 0, 549, DETAIL_NONE, 0,
	  RANGE " offset:size@16 client:handle@1188 memory:handle@1192" },
	{ 33, "UVM_MAP_EXTERNAL_ALLOCATION", 9260, 0, 550, 0, DETAIL_NONE, 0,
	  RANGE " offset:size@16 client:handle@9252 memory:handle@9256" },
	{ 34, "UVM_FREE", 16, 0, 0, 589, DETAIL_NONE, 0, RANGE },
	{ 34, "UVM_FREE", 8, 0, 590, 0, DETAIL_NONE, 0, "base:addr@0" },
	{ 35, "UVM_MEM_MAP", AT(16), RANGE },
	{ 37, "UVM_REGISTER_GPU", AT(36), "gpu:processor@0 fd:int@24 client:handle@28" },
	{ 38, "UVM_UNREGISTER_GPU", AT(16), "gpu:processor@0" },
	{ 39, "UVM_PAGEABLE_MEM_ACCESS", AT(4), "" },
	{ 40, "UVM_PREVENT_MIGRATION_RANGE_GROUPS", AT(264), "groups:u64@256" },
	{ 41, "UVM_ALLOW_MIGRATION_RANGE_GROUPS", AT(264), "groups:u64@256" },
	{ 42, "UVM_SET_PREFERRED_LOCATION", 32, 0, 0, 549, DETAIL_NONE, 0,
	  RANGE " to:processor@16" },
	{ 42, "UVM_SET_PREFERRED_LOCATION", 36, 0, 550, 0, DETAIL_NONE, 0,
	  RANGE " to:processor@16 node:int@32" },
	{ 43, "UVM_UNSET_PREFERRED_LOCATION", AT(16), RANGE },
	{ 44, "UVM_ENABLE_READ_DUPLICATION", AT(16), RANGE },
	{ 45, "UVM_DISABLE_READ_DUPLICATION", AT(16), RANGE },
	{ 46, "UVM_SET_ACCESSED_BY", AT(32), RANGE " by:processor@16" },
	{ 47, "UVM_UNSET_ACCESSED_BY", AT(32), RANGE " by:processor@16" },
	{ 51, "UVM_MIGRATE", AT(72), RANGE " to:processor@16 flags:hex@32 node:int@52" },
	{ 53, "UVM_MIGRATE_RANGE_GROUP", AT(24), "group:u64@0 to:processor@8" },
	{ 56, "UVM_TOOLS_INIT_EVENT_TRACKER", AT(48), "queue:addr@0 size:size@8 fd:int@44" },
	{ 57, "UVM_TOOLS_SET_NOTIFICATION_THRESHOLD", AT(4), "threshold:uint@0" },
	{ 58, "UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS", AT(8), "events:hex64@0" },
	{ 59, "UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS", AT(8), "events:hex64@0" },
	{ 60, "UVM_TOOLS_ENABLE_COUNTERS", AT(8), "counters:hex64@0" },
	{ 61, "UVM_TOOLS_DISABLE_COUNTERS", AT(8), "counters:hex64@0" },
	{ 62, "UVM_TOOLS_READ_PROCESS_MEMORY", AT(32), "size:size@8 address:addr@16" },
	{ 63, "UVM_TOOLS_WRITE_PROCESS_MEMORY", AT(32), "size:size@8 address:addr@16" },
	{ 64, "UVM_TOOLS_GET_PROCESSOR_UUID_TABLE", AT(8), "" },
	{ 65, "UVM_MAP_DYNAMIC_PARALLELISM_REGION", AT(32), RANGE " gpu:processor@16" },
	{ 66, "UVM_UNMAP_EXTERNAL", AT(32), RANGE " gpu:processor@16" },
	{ 67, "UVM_TOOLS_FLUSH_EVENTS", AT(0), "" },
	{ 68, "UVM_ALLOC_SEMAPHORE_POOL", NONE, RANGE },
	{ 69, "UVM_CLEAN_UP_ZOMBIE_RESOURCES", AT(0), "" },
	{ 70, "UVM_PAGEABLE_MEM_ACCESS_ON_GPU", AT(20), "gpu:processor@0" },
	{ 71, "UVM_POPULATE_PAGEABLE", AT(20), RANGE " flags:hex@16" },
	{ 72, "UVM_VALIDATE_VA_RANGE", AT(16), RANGE },
	{ 73, "UVM_CREATE_EXTERNAL_RANGE", AT(16), RANGE },
	{ 74, "UVM_MAP_EXTERNAL_SPARSE", AT(32), RANGE " gpu:processor@16" },
	{ 75, "UVM_MM_INITIALIZE", AT(4), "fd:int@0" },
	{ 76, "UVM_TOOLS_INIT_EVENT_TRACKER_V2", AT(48), "queue:addr@0 size:size@8 fd:int@44" },
	{ 77, "UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2", AT(8), "" },
	{ 78, "UVM_ALLOC_DEVICE_P2P", AT(52),
	  RANGE " gpu:processor@24 client:handle@44 memory:handle@48" },
	{ 79, "UVM_CLEAR_ALL_ACCESS_COUNTERS", AT(0), "" },
	{ 80, "UVM_DISCARD", AT(24), RANGE " flags:hex64@16" },
	{ 2047, "UVM_IS_8_SUPPORTED", AT(4), "" },
	{ 0x30000001, "UVM_INITIALIZE", AT(8), "flags:hex64@0" },
	{ 0x30000002, "UVM_DEINITIALIZE", NONE, "" },
};

const size_t n_nvidia_uvm_ioctls = ARRAY_SIZE(nvidia_uvm_ioctls);

/* ---- ioctls rm ----------------------------------------------------------------------------- */

#define CLASS   DETAIL_CLASS, 12
#define CONTROL DETAIL_CONTROL, 8

const struct nvidia_ioctl nvidia_rm_ioctls[] = {
	{ 0x27, "RM_ALLOC_MEMORY", 40, 0, 0, 0, CLASS,
	  "client:handle@0 parent:handle@4 object:handle@8 flags:hex@16 address:addr@24 "
	  "limit:size@32" },
	{ 0x28, "RM_ALLOC_OBJECT", 16, 0, 0, 0, CLASS,
	  "client:handle@0 parent:handle@4 object:handle@8" },
	{ 0x29, "RM_FREE", AT(12), "client:handle@0 parent:handle@4 object:handle@8" },
	{ 0x2a, "RM_CONTROL", 28, 0, 0, 0, CONTROL, "client:handle@0 object:handle@4" },
	/* NVOS21, which had no size of its parameters before 530; then NVOS64, as CUDA has it */
	{ 0x2b, "RM_ALLOC", 24, 32, 0, 529, CLASS,
	  "client:handle@0 parent:handle@4 object:*handle@8" },
	{ 0x2b, "RM_ALLOC", 28, 32, 530, 0, CLASS,
	  "client:handle@0 parent:handle@4 object:*handle@8" },
	{ 0x2b, "RM_ALLOC", 36, 40, 0, 529, CLASS,
	  "client:handle@0 parent:handle@4 object:*handle@8" },
	{ 0x2b, "RM_ALLOC", 40, 0, 0, 0, CLASS,
	  "client:handle@0 parent:handle@4 object:*handle@8" },
	{ 0x34, "RM_DUP_OBJECT", AT(24),
	  "client:handle@0 parent:handle@4 object:*handle@8 source_client:handle@12 "
	  "source_object:handle@16" },
	{ 0x35, "RM_SHARE", AT(20), "client:handle@0 object:handle@4" },
	{ 0x39, "RM_I2C_ACCESS", NONE, "" },
	{ 0x41, "RM_IDLE_CHANNELS", AT(48), "client:handle@0 device:handle@4 channel:handle@8" },
	{ 0x4a, "RM_VID_HEAP_CONTROL", AT(20),
	  "client:handle@0 parent:handle@4 function:uint@8 memory:handle@44 size:size@88" },
	{ 0x4d, "RM_ACCESS_REGISTRY", NONE, "client:handle@0 object:handle@4" },
	{ 0x4e, "RM_MAP_MEMORY", AT(40),
	  "client:handle@0 device:handle@4 memory:handle@8 offset:size@16 length:size@24 "
	  "address:*addr@32 fd:int@48" },
	{ 0x4f, "RM_UNMAP_MEMORY", AT(24),
	  "client:handle@0 device:handle@4 memory:handle@8 address:addr@16" },
	{ 0x52, "RM_GET_EVENT_DATA", AT(12), "more:*uint@8" },
	{ 0x54, "RM_ALLOC_CONTEXT_DMA2", 48, 0, 0, 0, CLASS,
	  "parent:handle@0 object:handle@8 memory:handle@24 limit:size@40" },
	{ 0x56, "RM_ADD_VBLANK_CALLBACK", NONE, "" },
	{ 0x57, "RM_MAP_MEMORY_DMA", 48, 0, 0, 579, DETAIL_NONE, 0,
	  "client:handle@0 device:handle@4 dma:handle@8 memory:handle@12 offset:size@16 "
	  "length:size@24 address:*addr@40" },
	{ 0x57, "RM_MAP_MEMORY_DMA", 56, 0, 580, 0, DETAIL_NONE, 0,
	  "client:handle@0 device:handle@4 dma:handle@8 memory:handle@12 offset:size@16 "
	  "length:size@24 address:*addr@48" },
	{ 0x58, "RM_UNMAP_MEMORY_DMA", 32, 0, 0, 549, DETAIL_NONE, 0,
	  "client:handle@0 device:handle@4 dma:handle@8 memory:handle@12 address:addr@24" },
	{ 0x58, "RM_UNMAP_MEMORY_DMA", 40, 0, 550, 0, DETAIL_NONE, 0,
	  "client:handle@0 device:handle@4 dma:handle@8 memory:handle@12 address:addr@24" },
	{ 0x59, "RM_BIND_CONTEXT_DMA", AT(12), "client:handle@0 channel:handle@4 dma:handle@8" },
	{ 0x5c, "RM_EXPORT_OBJECT_TO_FD", NONE, "" },
	{ 0x5d, "RM_IMPORT_OBJECT_FROM_FD", NONE, "" },
	{ 0x5e, "RM_UPDATE_DEVICE_MAPPING_INFO", AT(32),
	  "client:handle@0 device:handle@4 memory:handle@8 from:addr@16 to:addr@24" },
	{ 0x5f, "RM_LOCKLESS_DIAGNOSTIC", NONE, "" },
	{ 0xc8, "CARD_INFO", NONE, "" },
	{ 0xc9, "REGISTER_FD", NONE, "fd:int@0" },
	{ 0xce, "ALLOC_OS_EVENT", AT(12), "client:handle@0 device:handle@4 fd:int@8" },
	{ 0xcf, "FREE_OS_EVENT", AT(12), "client:handle@0 device:handle@4 fd:int@8" },
	{ 0xd1, "STATUS_CODE", NONE, "" },
	{ 0xd2, "CHECK_VERSION_STR", NONE, "reply:*uint@4" },
	{ 0xd3, "IOCTL_XFER_CMD", NONE, "number:uint@0 size:uint@4" },
	{ 0xd4, "ATTACH_GPUS_TO_FD", NONE, "" },
	{ 0xd5, "QUERY_DEVICE_INTR", NONE, "" },
	{ 0xd6, "SYS_PARAMS", NONE, "memblock:u64@0" },
	{ 0xd7, "NUMA_INFO", NONE, "" },
	{ 0xd8, "SET_NUMA_STATUS", NONE, "status:int@0" },
	{ 0xd9, "EXPORT_TO_DMABUF_FD", NONE, "" },
	{ 0xda, "WAIT_OPEN_COMPLETE", NONE, "result:*int@0 adapter:*hex@4" },
};

const size_t n_nvidia_rm_ioctls = ARRAY_SIZE(nvidia_rm_ioctls);

/* ---- what a block points at ------------------------------------------------------------------ */

#define CHANNEL                                                                                    \
	"+entries:uint@16 +context_share:handle@24 +vaspace:handle@28 +engine:uint@128 "           \
	"+channel_id:*uint@132"
#define MEMORY "+flags:hex@8 +size:size@64"

const struct nvidia_params nvidia_class_params[] = {
	{ 0x006f, 0xff, CHANNEL }, /* all ..6f are channels */
	{ 0xa06c, 0xffff, "+vaspace:handle@8 +engine:uint@12" },
	{ 0x003e, 0xffff, MEMORY },
	{ 0x003f, 0xffff, MEMORY },
	{ 0x0040, 0xffff, MEMORY },
	{ 0x0070, 0xffff, MEMORY },
	{ 0x50a0, 0xffff, MEMORY },
	{ 0x0080, 0xffff, "+device:uint@0" },
	{ 0x2080, 0xffff, "+subdevice:uint@0" },
	{ 0x9067, 0xffff, "+vaspace:handle@0" },
};

const size_t n_nvidia_class_params = ARRAY_SIZE(nvidia_class_params);

const struct nvidia_params nvidia_control_params[] = {
	{ 0xa06f0104, ~0u, "+engine:uint@0" },
	{ 0xa06c0102, ~0u, "+engine:uint@0" },
	{ 0xa06c0103, ~0u, "+timeslice_us:u64@0" },
	{ 0xa06c0104, ~0u, "+timeslice_us:*u64@0" },
	{ 0xa06c0107, ~0u, "+level:uint@0" },
	{ 0xa06f0109, ~0u, "+level:uint@0" },
	{ 0xa06c0108, ~0u, "+level:*uint@0" },
	{ 0xa06f0110, ~0u, "+level:*uint@0" },
	{ 0xa06c0105, ~0u, "+timeout_us:uint@4" },
	{ 0xa06c0106, ~0u, "+tsg:*uint@0" },
	{ 0xa06f0113, ~0u, "+context_id:*uint@0" },
	{ 0xc36f0108, ~0u, "+token:*hex@0" },
	{ 0x00000215, ~0u, "+gpu:hex@0" },
	{ 0x20801210, ~0u, "+flags:hex@0 +channel:handle@4 +graphics:uint@8 +compute:uint@12" },
};

const size_t n_nvidia_control_params = ARRAY_SIZE(nvidia_control_params);
