// SPDX-License-Identifier: MIT
#include "probe/self_target.h"

#include <link.h>
#include <stddef.h>

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl self_target\n"
        ".type self_target, @function\n"
        "self_target:\n"
        "	push %rbp\n"
        "	mov %rsp, %rbp\n"
        "	xor %eax, %eax\n"
        "	pop %rbp\n"
        "	ret\n"
        ".size self_target, . - self_target\n"
        ".popsection\n");
#else
__attribute__((noinline, noclone)) long self_target(long a, long b)
{
	__asm__ volatile("" ::"r"(a), "r"(b));
	return 0;
}
#endif

/* The first object that dl_iterate_phdr reports is the program itself. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t address = (uint64_t)&self_target - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && address - ph->p_vaddr < ph->p_filesz)
			*(uint64_t *)data = address - ph->p_vaddr + ph->p_offset;
	}
	return 1;
}

uint64_t self_target_offset(void)
{
	uint64_t offset = 0;

	dl_iterate_phdr(find_offset, &offset);
	return offset;
}
