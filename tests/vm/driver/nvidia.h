/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* What the files of the stand-in's nvidia.ko share. */
#ifndef NVIDIA_H
#define NVIDIA_H

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/poll.h>
#include <linux/workqueue.h>

#include "standin.h"

struct nvidia_file { /* of an open descriptor */
	wait_queue_head_t wait;
	bool event; /* nobody has polled it away yet */
	struct hrtimer timer;
	struct work_struct bottom;
};

/* nvidia_rm.c: what an ioctl with this number does to the parameters, of which the caller has a
 * copy; 0 or -errno. */
int rm_ioctl(struct nvidia_file *file, u32 nr, void *params, u32 size);

/* Called with the arguments that the real ones have: these are what tracers hook. */
void nv_post_event(void *event, u32 handle, u32 index, u32 info32, u16 info16, bool data_valid);
void nv_report_error(struct pci_dev *pci, u32 xid, const char *format, va_list args);
irqreturn_t nvidia_isr(int irq, void *file);
irqreturn_t nvidia_isr_msix(int irq, void *file);
int nvUvmInterfaceRegisterGpu(const void *uuid, void *info);
void standin_xid(const struct standin_xid *ask);

#endif
