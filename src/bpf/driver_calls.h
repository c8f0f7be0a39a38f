/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * System calls of targets to devices of the NVIDIA driver: which file it is, the kernel says, by
 * the number of its device. Parameters are read at the entry, where they are sure to be resident
 * (the program has just written them), and once more at the exit, where they hold results.
 */
#pragma once

#include "bpf/call_shares.h"
#include "bpf/files.h"

#define MAX_DRIVER_THREADS 4096
#define POLLED_MAX         8                     /* descriptors of one poll that are looked at */
#define PATH_OF_NVIDIA     0x69766e2f7665642full /* "/dev/nvi", lowest byte first */
#define PATH_MOST          32
#define PATH_OF_DEV        0xffffffffffull /* its first five bytes */

#define IOCTL_SIZE(command) ((command) >> 16 & 0x3fff)
#define IOCTL_TYPE(command) ((command) >> 8 & 0xff)
#define FRONTEND_TYPE       0x46
#define NR_CONTROL          0x2a
#define NR_ALLOC            0x2b
#define NR_XFER             0xd3

/* System calls that threads are in. */
MAP(HASH, MAX_DRIVER_THREADS, __u32 /* tid */, struct wire_driver_call) driver_calls SEC(".maps");

MAP(ARRAY, 1, __u32, struct wire_driver_call) blank_driver_call SEC(".maps");

/*
 * A length that the verifier still sees the bound of where it is used: clang drops a comparison
 * that it has proved before, and verifiers of old forget bounds of what went through the stack.
 */
#define AT_MOST(value, most)                                                                       \
	({                                                                                         \
		__u64 value_ = (value);                                                            \
		asm volatile("" : "+r"(value_));                                                   \
		value_ > (most) ? (__u64)(most) : value_;                                          \
	})

/*
 * The kind of device behind a descriptor of the current process in the upper half, its minor number
 * in the lower; 0: it is none of ours. A global function, which the verifier goes through once.
 */
__attribute__((noinline)) __u64 driver_device(__u64 fd)
{
	struct file *file = file_of(fd & 0xffffffff);
	__u32 number = file ? BPF_CORE_READ(file, f_inode, i_rdev) : 0;
	__u32 major = number >> 20, minor = number & 0xfffff;

	for (int i = 0; number && i < WIRE_DEVICES; i++) {
		const struct wire_device *device = &state.devices[i];

		if (device->kind && device->major == major && device->first <= minor &&
		    minor <= device->last)
			return (__u64)device->kind << 32 | minor;
	}
	return 0;
}

/* A call that the current thread begins; NULL where there is no room for it. */
static __always_inline struct wire_driver_call *driver_begin(__u64 id, __u8 syscall, __u64 device)
{
	__u32 tid = id, zero = 0;
	const void *blank = bpf_map_lookup_elem(&blank_driver_call, &zero);
	struct wire_thread *thread = device ? thread_get(id) : 0; /* who is told of, once */
	struct call_share *share = call_share_of(id >> 32);
	struct wire_driver_call *call;

	if (!blank || call_share_put(share ? &share->driver : 0, MAX_DRIVER_THREADS / 2,
	                             &driver_calls, &tid, blank)) {
		if (device)
			count_lost(LOST_THREADS_FULL);
		return 0;
	}
	call = bpf_map_lookup_elem(&driver_calls, &tid);
	if (!call)
		return 0;
	head_fill(&call->head, WIRE_DRIVER_CALL, id, bpf_ktime_get_ns());
	call->begin_ns = call->head.time_ns;
	call->head.words = syscall;
	call->head.hook = device >> 32;
	call->head.depth = thread ? thread->depth : 0;
	call->minor = device;
	return call;
}

/* What the current thread began, if it is of this kind. */
static __always_inline struct wire_driver_call *driver_pending(__u64 id, __u8 syscall)
{
	__u32 tid = id;
	struct wire_driver_call *call = bpf_map_lookup_elem(&driver_calls, &tid);

	return call && call->head.tgid == id >> 32 && call->head.words == syscall ? call : 0;
}

static __always_inline void driver_forget(const struct wire_driver_call *call, __u32 tid)
{
	struct call_share *share = call_share_known(call->head.tgid);

	if (!bpf_map_delete_elem(&driver_calls, &tid))
		call_share_took(share ? &share->driver : 0);
}

static __always_inline void driver_send(struct wire_driver_call *call)
{
	__u32 bytes = call->params_bytes ? WIRE_DRIVER_DATA
	              : call->tail_bytes ? WIRE_DRIVER_HEAD + WIRE_DRIVER_TAIL
	              : call->head_bytes ? WIRE_DRIVER_HEAD
	                                 : 0;

	call->head.bytes = bytes;
	if (call->head.flags & WIRE_UNREADABLE)
		count_lost(LOST_UNREADABLE);
	emit_or_count(call, AT_MOST(WIRE_DRIVER_BYTES(bytes), sizeof(*call)), WAKE_IF_FULL,
	              LOST_RING_FULL);
}

static __always_inline void driver_end(struct wire_driver_call *call, __u64 id, __s64 result)
{
	call->result = result;
	call->head.time_ns = bpf_ktime_get_ns();
	driver_send(call);
	driver_forget(call, id);
}

/* ---- ioctl ---------------------------------------------------------------------------------- */

static __always_inline const struct wire_window *uvm_window(__u32 command)
{
	__u32 at = command == WIRE_UVM_BEGIN || command == WIRE_UVM_END ? command & 3 : command + 2;

	/* the first places are those of the two large numbers: no ioctl has them */
	if (command >= WIRE_UVM_NUMBERS - 2 && command < WIRE_UVM_BEGIN)
		at = 0;
	return at < WIRE_UVM_NUMBERS ? &state.uvm_windows[BOUNDED(at, WIRE_UVM_NUMBERS - 1)] : 0;
}

struct driver_block {
	__u64 address;
	__u32 number, bytes;
	__u16 head, tail_at, tail;
};

static __always_inline void block_of_uvm(struct driver_block *block, __u32 command)
{
	const struct wire_window *window = uvm_window(command);

	block->number = command;
	if (!window)
		return;
	block->head = window->head;
	block->tail_at = window->tail_at;
	block->tail = window->tail;
}

/* XFER_CMD carries the number, the size and the address of another one. */
static __always_inline int block_of_frontend(struct driver_block *block, __u32 command)
{
	struct {
		__u32 number, bytes;
		__u64 address;
	} transfer = {};

	block->number = command & 0xff;
	block->bytes = IOCTL_SIZE(command);
	if (block->number == NR_XFER && IOCTL_TYPE(command) == FRONTEND_TYPE) {
		if (bpf_probe_read_user(&transfer, sizeof(transfer), (void *)block->address))
			return -1;
		block->number = transfer.number & 0xff;
		block->bytes = transfer.bytes;
		block->address = transfer.address;
	}
	block->head = block->bytes < WIRE_DRIVER_HEAD ? block->bytes : WIRE_DRIVER_HEAD;
	return 0;
}

/* What was read before stays where it cannot be read again. */
static __always_inline void block_read(struct wire_driver_call *call,
                                       const struct driver_block *block)
{
	__u32 head = block->head, tail = block->tail;

	if (head > WIRE_DRIVER_HEAD)
		head = WIRE_DRIVER_HEAD;
	if (tail > WIRE_DRIVER_TAIL)
		tail = WIRE_DRIVER_TAIL;
	if (head) {
		if (bpf_probe_read_user(call->data, AT_MOST(head, WIRE_DRIVER_HEAD),
		                        (void *)block->address))
			call->head.flags |= WIRE_UNREADABLE;
		else
			call->head_bytes = head;
	}
	if (tail) {
		if (bpf_probe_read_user(call->data + WIRE_DRIVER_HEAD,
		                        AT_MOST(tail, WIRE_DRIVER_TAIL),
		                        (void *)block->address + block->tail_at))
			call->head.flags |= WIRE_UNREADABLE;
		else
			call->tail_bytes = tail;
		call->tail_at = block->tail_at;
	}
}

/* Fewer where more would lead into a page that is not there: what the block says of it may be 0. */
static __always_inline void params_read(struct wire_driver_call *call)
{
	__u8 *to = call->data + WIRE_DRIVER_HEAD + WIRE_DRIVER_TAIL;
	__u64 from = *(__u64 *)(call->data + 16);
	__u32 said = *(__u32 *)(call->data + (call->head_bytes == 48 ? 32 : 24));
	__u32 bytes = said ? said : WIRE_DRIVER_PARAMS;

	/* else clang compares another register than the one that is read by, which 6.12 rejects */
	asm volatile("" : "+r"(bytes));
	if (bytes > WIRE_DRIVER_PARAMS)
		bytes = WIRE_DRIVER_PARAMS;
	if (!from || (call->number != NR_CONTROL && call->number != NR_ALLOC))
		return;
	if (!bpf_probe_read_user(to, AT_MOST(bytes, WIRE_DRIVER_PARAMS), (void *)from))
		call->params_bytes = bytes;
	else if (!bpf_probe_read_user(to, 32, (void *)from))
		call->params_bytes = 32;
	else if (!bpf_probe_read_user(to, 4, (void *)from))
		call->params_bytes = 4;
	else
		call->head.flags |= WIRE_UNREADABLE;
}

static __always_inline void ioctl_read(struct wire_driver_call *call, int at_exit)
{
	struct driver_block block = { .address = call->argument[1] };
	__u32 command = call->argument[0];
	int uvm = call->head.hook == WIRE_DRIVER_UVM || call->head.hook == WIRE_DRIVER_TOOLS;

	if (uvm) {
		block_of_uvm(&block, command);
	} else if (block_of_frontend(&block, command)) {
		call->head.flags |= WIRE_UNREADABLE;
		return;
	}
	call->number = block.number;
	call->block_bytes = block.bytes;
	block_read(call, &block);
	if (at_exit && !uvm && call->head_bytes >= 32 && IOCTL_TYPE(command) == FRONTEND_TYPE)
		params_read(call);
}

static __always_inline void ioctl_entered(struct syscall_entered *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), device;
	struct wire_driver_call *call;

	if (!target_matches(id >> 32))
		return;
	device = driver_device(ctx->arg[0]);
	call = device ? driver_begin(id, SYSCALL_IOCTL, device) : 0;
	if (!call)
		return;
	call->fd = ctx->arg[0];
	call->argument[0] = (__u32)ctx->arg[1];
	call->argument[1] = ctx->arg[2];
	ioctl_read(call, 0);
}

static __always_inline void ioctl_left(struct syscall_left *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct wire_driver_call *call = driver_pending(id, SYSCALL_IOCTL);

	if (!call)
		return;
	call->head.flags = 0; /* what could not be read at the entry may be there now */
	ioctl_read(call, 1);
	driver_end(call, id, ctx->result);
}

/* ---- the others ----------------------------------------------------------------------------- */

/*
 * Which device it is, is known when it is open. Of what begins with no path into /dev, the begin is
 * not kept: seldom is it a device. One that cannot be read yet may be.
 */
static __always_inline void open_entered(__u64 name)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct wire_driver_call *call;
	__u64 path = 0;
	long unread;

	if (!target_matches(id >> 32))
		return;
	unread = bpf_probe_read_user(&path, sizeof(path), (void *)name);
	if (!unread && (path ^ PATH_OF_NVIDIA) & PATH_OF_DEV)
		return;
	call = driver_begin(id, SYSCALL_OPEN, 0);
	if (!call && !unread && path == PATH_OF_NVIDIA)
		count_lost(LOST_THREADS_FULL); /* others may well be no device of ours */
	if (!call || unread || path != PATH_OF_NVIDIA)
		return;
	/* of one that fails, nothing else says which it was to be */
	if (bpf_probe_read_user_str(call->data, PATH_MOST, (void *)name) > 0)
		call->head_bytes = PATH_MOST;
}

/* By a link, or a path that begins in another folder: what is open says that it is a device. */
static __always_inline void open_elsewhere(const struct syscall_left *ctx, __u64 id)
{
	struct wire_driver_call *call;
	__u64 device;

	if (ctx->result < 0 || !target_matches(id >> 32))
		return;
	device = driver_device(ctx->result);
	call = device ? driver_begin(id, SYSCALL_OPEN, device) : 0;
	if (!call)
		return;
	call->fd = ctx->result;
	driver_end(call, id, ctx->result);
}

static __always_inline void open_left(struct syscall_left *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), device;
	struct wire_driver_call *call = driver_pending(id, SYSCALL_OPEN);
	struct wire_thread *thread;

	if (!call) {
		open_elsewhere(ctx, id);
		return;
	}
	device = ctx->result >= 0 ? driver_device(ctx->result) : 0;
	if (!device && (ctx->result >= 0 || !call->head_bytes)) {
		driver_forget(call, id);
		return;
	}
	thread = thread_get(id);
	call->head.hook = device >> 32;
	call->head.depth = thread ? thread->depth : 0;
	call->minor = device;
	call->fd = ctx->result;
	driver_end(call, id, ctx->result);
}

static __always_inline void file_call_entered(struct syscall_entered *ctx, __u8 syscall, __u64 fd)
{
	__u64 id = bpf_get_current_pid_tgid(), device;
	struct wire_driver_call *call;

	if (!target_matches(id >> 32))
		return;
	device = driver_device(fd);
	call = device ? driver_begin(id, syscall, device) : 0;
	if (!call)
		return;
	call->fd = fd;
	if (syscall == SYSCALL_MMAP)
		call->argument[1] = ctx->arg[1];
}

static __always_inline void file_call_left(struct syscall_left *ctx, __u8 syscall)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct wire_driver_call *call = driver_pending(id, syscall);

	if (!call)
		return;
	if (syscall == SYSCALL_MMAP && (ctx->result >= 0 || ctx->result < -4095))
		call->argument[0] = ctx->result;
	driver_end(call, id, ctx->result);
}

/* The first descriptor of ours, of the first few, says which device it waits for. */
static __always_inline void poll_entered(struct syscall_entered *ctx, __s64 timeout_ms)
{
	struct {
		__s32 fd;
		__u32 events;
	} polled[POLLED_MAX] = {};
	__u64 id = bpf_get_current_pid_tgid(), device = 0;
	__u32 n = ctx->arg[1];
	struct wire_driver_call *call;

	if (!target_matches(id >> 32) || !n)
		return;
	if (n > POLLED_MAX)
		n = POLLED_MAX;
	if (bpf_probe_read_user(polled, AT_MOST(n * sizeof(polled[0]), sizeof(polled)),
	                        (void *)ctx->arg[0]))
		return;
	for (__u32 i = 0; i < POLLED_MAX && !device; i++) {
		if (i < n && polled[i].fd >= 0)
			device = driver_device(polled[i].fd);
	}
	call = device ? driver_begin(id, SYSCALL_POLL, device) : 0;
	if (!call)
		return;
	call->argument[0] = ctx->arg[1];
	call->argument[1] = timeout_ms;
}

/* A thread that ends in a call, or execs, never leaves it. */
static __always_inline void driver_thread_ended(__u64 id)
{
	__u32 tid = id;
	struct wire_driver_call *call = bpf_map_lookup_elem(&driver_calls, &tid);

	if (!call)
		return;
	if (call->head.tgid == id >> 32 && call->head.hook) {
		call->head.flags |= WIRE_UNFINISHED;
		call->head.time_ns = bpf_ktime_get_ns();
		driver_send(call);
	}
	driver_forget(call, tid);
}
