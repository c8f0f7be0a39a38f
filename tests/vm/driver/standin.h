/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * A stand-in for NVIDIA's kernel modules: devices, numbers of ioctls and names of functions are
 * theirs, and nothing else is. There is no GPU. What its hardware would do (faults, interrupts,
 * errors) is asked for with ioctls of our own, of the type 'S', so that tests know the numbers. For
 * the modules, and for the program that exercises them.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Of functions that tracers hook: called as they are written, by whoever calls them. */
#define noipa __attribute__((noipa))

#ifdef STANDIN_OLD /* as it was up to 575: no trace event, other names and offsets */
#define STANDIN_VERSION "550.163.01"
#else
#define STANDIN_VERSION "580.95.05"
#endif

/* ---- /dev/nvidiactl, /dev/nvidiaN: the type 'F' ------------------------------------------------
 */

enum {
	RM_FREE = 0x29,
	RM_CONTROL = 0x2a,
	RM_ALLOC = 0x2b,
	RM_MAP_MEMORY = 0x4e,
	RM_UNMAP_MEMORY = 0x4f,
	NV_CARD_INFO = 200,
	NV_REGISTER_FD = 201,
	NV_ALLOC_OS_EVENT = 206,
	NV_FREE_OS_EVENT = 207,
	NV_CHECK_VERSION_STR = 210,
	NV_XFER_CMD = 211,
};

enum { /* what stands in `status`, which an ioctl that returns 0 has, too */
       RM_OK = 0,
       RM_INVALID_CLASS = 0x22,
       RM_INVALID_CLIENT = 0x23,
       RM_NOT_SUPPORTED = 0x56,
       RM_OBJECT_NOT_FOUND = 0x57,
};

struct rm_free {
	__u32 root, parent, object, status;
};

struct rm_control {
	__u32 client, object, cmd, flags;
	__u64 params;
	__u32 params_size, status;
};

struct rm_alloc { /* the newer one of 48 bytes; of the older one the first 24 are the same */
	__u32 root, parent, object, class;
	__u64 params, rights;
	__u32 params_size, flags, status, pad;
};

struct rm_alloc_short {
	__u32 root, parent, object, class;
	__u64 params;
	__u32 params_size, status;
};

struct rm_channel { /* what is asked of a channel; its number comes back */
	__u32 asked[32], engine, number;
};

struct rm_preemption {
	__u32 flags, channel, graphics, compute, route[4];
};

struct rm_map {
	__u32 client, device, memory, pad;
	__u64 offset, length, linear;
	__u32 status, flags;
	__s32 fd;
	__u32 pad2;
};

struct nv_xfer {
	__u32 cmd, size;
	__u64 pointer;
};

struct nv_os_event {
	__u32 client, device;
	__s32 fd;
	__u32 status;
};

struct nv_version {
	__u32 cmd, reply;
	char text[64];
};

struct nv_card {
	__u32 valid, pci[3], gpu_id, pad[9], minor, pad2[3];
};

/* ---- /dev/nvidia-uvm: the command is the number ------------------------------------------------
 */

enum {
	UVM_FREE = 34,
	UVM_REGISTER_GPU = 37,
	UVM_MIGRATE = 51,
	UVM_CREATE_EXTERNAL_RANGE = 73,
	UVM_MM_INITIALIZE = 75,
	UVM_INITIALIZE = 0x30000001,
	UVM_DEINITIALIZE = 0x30000002,
};

struct uvm_initialize {
	__u64 flags;
	__u32 status;
};

struct uvm_register_gpu {
	__u8 uuid[16];
	__u64 numa;
	__s32 fd;
	__u32 client, object, status;
};

struct uvm_range { /* FREE and CREATE_EXTERNAL_RANGE */
	__u64 base, length;
	__u32 status;
};

struct uvm_migrate {
	__u64 base, length;
	__u8 uuid[16]; /* all zeros: the host */
	__u32 flags;
	__u64 semaphore;
	__u32 payload;
	__s32 node;
	__u64 user_start, user_length;
	__u32 status;
};

/* ---- what the hardware would do ----------------------------------------------------------------
 */

struct standin_xid {
	__u32 xid;
	__u32 pid; /* 0: none is named */
};

struct standin_event {
	__u32 delay_us; /* until an interrupt wakes who polls this descriptor */
};

struct standin_gpu { /* from the first address on, each `step` bytes further */
	__u64 address, step, bytes;
	__u32 count, write;
};

#define STANDIN_XID   _IOW('S', 1, struct standin_xid)
#define STANDIN_EVENT _IOW('S', 2, struct standin_event)
#define STANDIN_FAULTS                                                                             \
	_IOW('S', 3, struct standin_gpu) /* faults of a GPU, each migrates `bytes` to it */
#define STANDIN_EVICTIONS                                                                          \
	_IOW('S', 4, struct standin_gpu) /* `bytes` go back to the host, for want of room */
#define STANDIN_THRASHING _IOW('S', 5, struct standin_gpu)
#define STANDIN_FATAL     _IOW('S', 6, struct standin_gpu) /* faults that no access can answer */

#endif
