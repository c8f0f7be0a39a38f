// SPDX-License-Identifier: (GPL-2.0 OR MIT)
/* The stand-in's nvidia.ko: the devices, and the functions of the interface layer under their real
 * names. */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "nvidia.h"
#ifndef STANDIN_OLD
#define CREATE_TRACE_POINTS
#include "nvidia_xid.h"
#endif

#define MAJOR_NUMBER 195
#define MINOR_CTL    255
#define PARAMS_MAX   16384

static struct page *mapped; /* what mmap gives, for each page */
static struct class *class;
static struct pci_dev *pci;

/* ---- interrupts ---------------------------------------------------------------------------- */

noipa void nv_post_event(void *event, u32 handle, u32 index, u32 info32, u16 info16,
                         bool data_valid)
{
	struct nvidia_file *file = event;

	WRITE_ONCE(file->event, true);
	wake_up_interruptible(&file->wait);
}

noipa irqreturn_t nvidia_isr(int irq, void *data)
{
	struct nvidia_file *file = data;

	schedule_work(&file->bottom);
	return IRQ_HANDLED;
}

noipa irqreturn_t nvidia_isr_msix(int irq, void *file)
{
	return nvidia_isr(irq, file);
}

static void bottom_half(struct work_struct *work)
{
	nv_post_event(container_of(work, struct nvidia_file, bottom), 0x5c000001, 1, 0, 0, false);
}

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	nvidia_isr_msix(33, container_of(timer, struct nvidia_file, timer));
	return HRTIMER_NORESTART;
}

/* ---- Xids ---------------------------------------------------------------------------------- */

noipa void nv_report_error(struct pci_dev *dev, u32 xid, const char *format, va_list args)
{
#ifndef STANDIN_OLD
	char text[128];

	vsnprintf(text, sizeof(text), format, args);
	trace_nvidia_dev_xid(dev ? pci_name(dev) : "0000:00:00.0", xid, text);
#endif
}

static __printf(2, 3) void log_error(u32 xid, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	nv_report_error(pci, xid, format, args);
	va_end(args);
}

noipa void standin_xid(const struct standin_xid *ask)
{
	char who[48] = "";

	if (ask->pid)
		snprintf(who, sizeof(who), "pid=%u, name=%s, ", ask->pid, current->comm);
	pr_err("NVRM: Xid (PCI:0000:00:00): %u, %sChannel 00000021\n", ask->xid, who);
	log_error(ask->xid, "%sChannel %08x", who, 0x21);
}

/* ---- the devices --------------------------------------------------------------------------- */

static int nvidia_open(struct inode *inode, struct file *filp)
{
	struct nvidia_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	init_waitqueue_head(&file->wait);
	INIT_WORK(&file->bottom, bottom_half);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&file->timer, interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(&file->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	file->timer.function = interrupt;
#endif
	filp->private_data = file;
	return 0;
}

static int nvidia_close(struct inode *inode, struct file *filp)
{
	struct nvidia_file *file = filp->private_data;

	hrtimer_cancel(&file->timer);
	cancel_work_sync(&file->bottom);
	kfree(file);
	return 0;
}

static long ask_hardware(struct nvidia_file *file, unsigned int cmd, void __user *user)
{
	struct standin_xid xid;
	struct standin_event event;

	switch (cmd) {
	case STANDIN_XID:
		if (copy_from_user(&xid, user, sizeof(xid)))
			return -EFAULT;
		standin_xid(&xid);
		return 0;
	case STANDIN_EVENT:
		if (copy_from_user(&event, user, sizeof(event)))
			return -EFAULT;
		hrtimer_start(&file->timer, ns_to_ktime(1000ull * event.delay_us),
		              HRTIMER_MODE_REL);
		return 0;
	}
	return -EINVAL;
}

static long nvidia_unlocked_ioctl(struct file *filp, unsigned int cmd, unsigned long address)
{
	struct nvidia_file *file = filp->private_data;
	u32 nr = _IOC_NR(cmd), size = _IOC_SIZE(cmd);
	void __user *user = (void __user *)address;
	struct nv_xfer xfer;
	void *params;
	long result;

	if (_IOC_TYPE(cmd) == 'S')
		return ask_hardware(file, cmd, user);
	if (_IOC_TYPE(cmd) != 'F')
		return -EINVAL;
	if (nr == NV_XFER_CMD) {
		if (size != sizeof(xfer) || copy_from_user(&xfer, user, sizeof(xfer)))
			return -EFAULT;
		nr = xfer.cmd;
		size = xfer.size;
		user = (void __user *)(unsigned long)xfer.pointer;
	}
	if (!size || size > PARAMS_MAX)
		return -EINVAL;
	params = kmalloc(size, GFP_KERNEL);
	if (!params)
		return -ENOMEM;
	result = copy_from_user(params, user, size) ? -EFAULT : rm_ioctl(file, nr, params, size);
	if (!result && copy_to_user(user, params, size))
		result = -EFAULT;
	kfree(params);
	return result;
}

static __poll_t nvidia_poll(struct file *filp, poll_table *wait)
{
	struct nvidia_file *file = filp->private_data;

	poll_wait(filp, &file->wait, wait);
	return xchg(&file->event, false) ? EPOLLIN | EPOLLRDNORM | EPOLLPRI : 0;
}

static int nvidia_mmap(struct file *filp, struct vm_area_struct *vma)
{
	unsigned long at;
	int result = 0;

	for (at = vma->vm_start; at < vma->vm_end && !result; at += PAGE_SIZE)
		result = vm_insert_page(vma, at, mapped);
	return result;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = nvidia_open,
	.release = nvidia_close,
	.unlocked_ioctl = nvidia_unlocked_ioctl,
	.compat_ioctl = nvidia_unlocked_ioctl,
	.poll = nvidia_poll,
	.mmap = nvidia_mmap,
};

noipa int nvUvmInterfaceRegisterGpu(const void *uuid, void *info)
{
	return RM_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceRegisterGpu);

static int version_show(struct seq_file *out, void *unused)
{
	seq_printf(out, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  stand-in\n",
	           STANDIN_VERSION);
	return 0;
}

static void remove_nodes(void)
{
	device_destroy(class, MKDEV(MAJOR_NUMBER, 0));
	device_destroy(class, MKDEV(MAJOR_NUMBER, MINOR_CTL));
	class_destroy(class);
	remove_proc_subtree("driver/nvidia", NULL);
}

static int __init standin_init(void)
{
	struct proc_dir_entry *folder;
	int result;

	mapped = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!mapped)
		return -ENOMEM;
	result = register_chrdev(MAJOR_NUMBER, "nvidia-frontend", &operations);
	if (result < 0) {
		__free_page(mapped);
		return result;
	}
	pci = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, NULL);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	class = class_create("nvidia");
#else
	class = class_create(THIS_MODULE, "nvidia");
#endif
	device_create(class, NULL, MKDEV(MAJOR_NUMBER, 0), NULL, "nvidia0");
	device_create(class, NULL, MKDEV(MAJOR_NUMBER, MINOR_CTL), NULL, "nvidiactl");
	folder = proc_mkdir("driver/nvidia", NULL);
	if (folder)
		proc_create_single("version", 0444, folder, version_show);
	return 0;
}

static void __exit standin_exit(void)
{
	remove_nodes();
	unregister_chrdev(MAJOR_NUMBER, "nvidia-frontend");
	pci_dev_put(pci);
	__free_page(mapped);
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_DESCRIPTION("a stand-in without a GPU, for tests of cuscope");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(STANDIN_VERSION);
