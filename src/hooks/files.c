// SPDX-License-Identifier: MIT
/* The files of hooks that cuscope has in itself: those of src/hooks/files. */
#include "base/array.h"
#include "hooks/hook_list.h"

/* The bytes of a file, with a NUL behind them. */
#define FILE_IN_SECTION(name)                                                                      \
	extern const char hook_file_##name[];                                                      \
	__asm__(".pushsection .rodata\n"                                                           \
	        ".globl hook_file_" #name "\n"                                                     \
	        "hook_file_" #name ":\n"                                                           \
	        ".incbin \"src/hooks/files/" #name ".hooks\"\n"                                    \
	        ".byte 0\n"                                                                        \
	        ".popsection\n")

FILE_IN_SECTION(cublas);
FILE_IN_SECTION(cudnn);
FILE_IN_SECTION(nccl);
FILE_IN_SECTION(nvidia);
FILE_IN_SECTION(nvidia_uvm);
FILE_IN_SECTION(pytorch);

static const struct {
	const char *name, *text;
} files[] = {
	{ "cublas", hook_file_cublas },
	{ "cudnn", hook_file_cudnn },
	{ "nccl", hook_file_nccl },
	{ "nvidia", hook_file_nvidia },
	{ "nvidia-uvm", hook_file_nvidia_uvm },
	{ "pytorch", hook_file_pytorch },
};

const char *hook_file_name(size_t index)
{
	return index < ARRAY_SIZE(files) ? files[index].name : NULL;
}

const char *hook_file_text(size_t index)
{
	return index < ARRAY_SIZE(files) ? files[index].text : NULL;
}
