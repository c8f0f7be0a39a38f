// SPDX-License-Identifier: (GPL-2.0 OR MIT)
/* The stand-in's nvidia-uvm.ko: the device, managed memory that a host touches, and ioctls. */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "uvm.h"

#define BLOCK_BYTES 0x200000ull /* migrations are told of by such parts */

int nvUvmInterfaceRegisterGpu(const void *uuid, void *info);

static dev_t first;
static struct cdev device;
static struct class *class;

uvm_va_space_t *uvm_space_of(struct file *file)
{
	unsigned long data = (unsigned long)READ_ONCE(file->private_data);

	return (data & 7) == UVM_FD_VA_SPACE ? (void *)(data & ~7ul) : NULL;
}

noipa void uvm_perf_event_notify(uvm_perf_va_space_events_t *events, u32 event,
                                 uvm_perf_event_data_t *data)
{
	WRITE_ONCE(events->notified, events->notified + 1);
}

/* ---- faults of the host -------------------------------------------------------------------- */

noipa int uvm_va_block_cpu_fault(void *block, u64 address, bool write, void *context)
{
	uvm_va_space_t *space = context;
	uvm_perf_event_data_t data = { .fault = { .proc_id = { 0 } } };

	data.fault.cpu.fault_va = address;
	data.fault.cpu.is_write = write;
	uvm_perf_event_notify(&space->perf_events, UVM_PERF_EVENT_FAULT, &data);
	standin_migration(space, 0, 1, address & PAGE_MASK, PAGE_SIZE, CAUSE_REPLAYABLE_FAULT);
	return RM_OK;
}

noipa int uvm_va_space_cpu_fault_managed(uvm_va_space_t *space, struct vm_fault *fault)
{
	return uvm_va_block_cpu_fault(NULL, fault->address, fault->flags & FAULT_FLAG_WRITE, space);
}

static vm_fault_t uvm_vm_fault_entry(struct vm_fault *fault)
{
	uvm_va_space_t *space = uvm_space_of(fault->vma->vm_file);
	struct page *page;

	if (!space)
		return VM_FAULT_SIGBUS;
	page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!page)
		return VM_FAULT_OOM;
	uvm_va_space_cpu_fault_managed(space, fault);
	fault->page = page;
	return 0;
}

static const struct vm_operations_struct memory_operations = { .fault = uvm_vm_fault_entry };

/* ---- ioctls -------------------------------------------------------------------------------- */

static int initialize(struct file *file, struct uvm_initialize *ask)
{
	uvm_va_space_t *space;

	if (uvm_space_of(file))
		return 0;
	space = kzalloc(sizeof(*space), GFP_KERNEL);
	if (!space)
		return -ENOMEM;
	mutex_init(&space->lock);
	space->perf_events.va_space = space;
	if (cmpxchg(&file->private_data, NULL, (void *)((unsigned long)space | UVM_FD_VA_SPACE)))
		kfree(space);
	ask->status = RM_OK;
	return 0;
}

static bool on_host(const struct uvm_migrate *ask)
{
	return !memchr_inv(ask->uuid, 0, sizeof(ask->uuid));
}

/* What was moved to a GPU is taken from the process: its next touch is a fault. */
noipa int uvm_api_migrate(struct uvm_migrate *ask, struct file *file)
{
	u32 dst = on_host(ask) ? 0 : 1;
	u64 at, bytes;

	if (ask->length > 1ull << 30 || ask->base + ask->length < ask->base)
		return -EINVAL;
	for (at = ask->base; at < ask->base + ask->length; at += bytes) {
		bytes = min(BLOCK_BYTES - (at & (BLOCK_BYTES - 1)), ask->base + ask->length - at);
		standin_migration(uvm_space_of(file), dst, !dst, at, bytes, CAUSE_API_MIGRATE);
	}
	if (dst)
		unmap_mapping_range(file->f_mapping, ask->base, ask->length, 1);
	ask->status = RM_OK;
	return 0;
}

static int register_gpu(struct uvm_register_gpu *ask)
{
	ask->status = nvUvmInterfaceRegisterGpu(ask->uuid, NULL);
	return 0;
}

static int range_known(struct uvm_range *ask)
{
	ask->status = RM_OK;
	return 0;
}

static long with_space(struct file *file, unsigned int cmd, void *params)
{
	if (!uvm_space_of(file))
		return -EINVAL;
	switch (cmd) {
	case UVM_REGISTER_GPU:
		return register_gpu(params);
	case UVM_MIGRATE:
		return uvm_api_migrate(params, file);
	case UVM_FREE:
	case UVM_CREATE_EXTERNAL_RANGE:
		return range_known(params);
	}
	return standin_gpu(uvm_space_of(file), cmd, params);
}

static size_t size_of(unsigned int cmd)
{
	switch (cmd) {
	case UVM_INITIALIZE:
		return sizeof(struct uvm_initialize);
	case UVM_REGISTER_GPU:
		return sizeof(struct uvm_register_gpu);
	case UVM_MIGRATE:
		return sizeof(struct uvm_migrate);
	case UVM_FREE:
	case UVM_CREATE_EXTERNAL_RANGE:
		return sizeof(struct uvm_range);
	}
	return _IOC_TYPE(cmd) == 'S' && _IOC_SIZE(cmd) == sizeof(struct standin_gpu)
	               ? _IOC_SIZE(cmd)
	               : 0;
}

static long uvm_unlocked_ioctl_entry(struct file *file, unsigned int cmd, unsigned long user)
{
	char params[sizeof(struct uvm_migrate)] __aligned(8) = {};
	size_t size = size_of(cmd);
	long result;

	if (!size)
		return -EINVAL;
	if (copy_from_user(params, (void __user *)user, size))
		return -EFAULT;
	result = cmd == UVM_INITIALIZE ? initialize(file, (void *)params)
	                               : with_space(file, cmd, params);
	if (!result && copy_to_user((void __user *)user, params, size))
		result = -EFAULT;
	return result;
}

/* ---- the device ---------------------------------------------------------------------------- */

static int uvm_open_entry(struct inode *inode, struct file *file)
{
	file->private_data = NULL;
	return 0;
}

static int uvm_release_entry(struct inode *inode, struct file *file)
{
	kfree(uvm_space_of(file));
	return 0;
}

/* As with the real one, memory lies at the offset that is its address. */
static int uvm_mmap_entry(struct file *file, struct vm_area_struct *vma)
{
	if (!uvm_space_of(file) || vma->vm_pgoff != vma->vm_start >> PAGE_SHIFT)
		return -EINVAL;
	vma->vm_ops = &memory_operations;
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = uvm_open_entry,
	.release = uvm_release_entry,
	.unlocked_ioctl = uvm_unlocked_ioctl_entry,
	.compat_ioctl = uvm_unlocked_ioctl_entry,
	.mmap = uvm_mmap_entry,
};

static int __init standin_init(void)
{
	int result = alloc_chrdev_region(&first, 0, 2, "nvidia-uvm");

	if (result)
		return result;
	cdev_init(&device, &operations);
	result = cdev_add(&device, first, 2);
	if (result) {
		unregister_chrdev_region(first, 2);
		return result;
	}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	class = class_create("nvidia-uvm");
#else
	class = class_create(THIS_MODULE, "nvidia-uvm");
#endif
	device_create(class, NULL, first, NULL, "nvidia-uvm");
	device_create(class, NULL, first + 1, NULL, "nvidia-uvm-tools");
	return 0;
}

static void __exit standin_exit(void)
{
	device_destroy(class, first);
	device_destroy(class, first + 1);
	class_destroy(class);
	cdev_del(&device);
	unregister_chrdev_region(first, 2);
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_DESCRIPTION("a stand-in without a GPU, for tests of cuscope");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(STANDIN_VERSION);
