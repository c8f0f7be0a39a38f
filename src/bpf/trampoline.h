/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* The page of the kernel's in each probed process. */
#pragma once

/* What stands in the place of the return address of a call that has a return probe: the kernel's
 * trampoline. */
static __always_inline __u64 return_trampoline(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}
