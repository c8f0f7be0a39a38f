// SPDX-License-Identifier: MIT
/* ioctls of /dev/nvidiactl and /dev/nvidia0.., by the number in their lowest byte. */
#include "base/array.h"
#include "nvidia/tables.h"

#define NONE    NVIDIA_NO_STATUS, 0, 0, 0, DETAIL_NONE, 0
#define AT(n)   n, 0, 0, 0, DETAIL_NONE, 0
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
