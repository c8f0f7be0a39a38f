/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* The trace event of an Xid, with the fields that drivers since 575 give it. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nvidia

#if !defined(NVIDIA_XID_H) || defined(TRACE_HEADER_MULTI_READ)
#define NVIDIA_XID_H

#include <linux/tracepoint.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define ASSIGN(field, value) __assign_str(field)
#else
#define ASSIGN(field, value) __assign_str(field, value)
#endif

/* clang-format off */
TRACE_EVENT(nvidia_dev_xid,
	TP_PROTO(const char *device, u32 error, const char *text),
	TP_ARGS(device, error, text),
	TP_STRUCT__entry(
		__string(dev, device)
		__field(u32, error_code)
		__string(msg, text)
	),
	TP_fast_assign(
		ASSIGN(dev, device);
		__entry->error_code = error;
		ASSIGN(msg, text);
	),
	TP_printk("Xid (PCI:%s): %u, %s", __get_str(dev), __entry->error_code, __get_str(msg))
);
/* clang-format on */

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE nvidia_xid
#include <trace/define_trace.h>
