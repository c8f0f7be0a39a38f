// SPDX-License-Identifier: MIT
#include "agent/inject_code.h"

#ifdef __x86_64__

_Static_assert(offsetof(struct frame, mask) == FRAME_MASK, "layout");
_Static_assert(offsetof(struct frame, interrupts) == FRAME_INTERRUPTS, "layout");
_Static_assert(offsetof(struct frame, flags) == FRAME_FLAGS, "layout");
_Static_assert(offsetof(struct frame, rax) == FRAME_RAX, "layout");
_Static_assert(offsetof(struct frame, rip) == FRAME_RIP, "layout");
_Static_assert(offsetof(struct area_head, first) == AREA_FIRST, "layout");
_Static_assert(offsetof(struct area_head, errno_location) == AREA_ERRNO, "layout");
_Static_assert(offsetof(struct area_head, xsave) == AREA_XSAVE, "layout");
_Static_assert(offsetof(struct area_head, errno_address) == AREA_ERRNO_ADDRESS, "layout");
_Static_assert(offsetof(struct area_head, errno_value) == AREA_ERRNO_VALUE, "layout");
_Static_assert(offsetof(struct area_head, pending) == AREA_PENDING, "layout");
_Static_assert(offsetof(struct area_head, state) == AREA_STATE, "layout");
_Static_assert(offsetof(struct area_head, action) == AREA_ACTION, "layout");
_Static_assert(offsetof(struct step, arg) == STEP_ARGS, "layout");
_Static_assert(offsetof(struct step, result) == STEP_RESULT, "layout");
_Static_assert(offsetof(struct step, loads) == STEP_LOADS, "layout");
_Static_assert(offsetof(struct step, fails) == STEP_FAILS, "layout");
_Static_assert(offsetof(struct step, otherwise) == STEP_OTHERWISE, "layout");
_Static_assert(sizeof(struct step) == STEP_BYTES, "layout");

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define LINE(x)    x "\n\t"

/* Argument `i` of the step at r14, with r15 its `loads`. */
#define ARGUMENT(i, reg)                                                                           \
	LINE("mov " TEXT(STEP_ARGS) "+8*" #i "(%r14), " reg)                                       \
	LINE("bt $" #i ", %r15")                                                                   \
	LINE("jnc 1f")                                                                             \
	LINE("mov (" reg "), " reg)                                                                \
	LINE("1:")

/*
 * rbx: area, r12: its size, rbp: frame, r14: step. The kernel destroys rax, rcx and r11 only.
 * Vector registers are saved whole: loaders and constructors use all that the processor has.
 */
__asm__(LINE(".pushsection .rodata") LINE(".balign 16")
                LINE(".globl inject_code, inject_code_end, inject_code_mapped")
                        LINE(".globl inject_code_stepped, inject_code_length") LINE("inject_code:")
                                LINE("syscall") /* rt_sigprocmask */
        LINE("mov $9, %eax") /* mmap(0, r12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS) */
        LINE("xor %edi, %edi") LINE("mov %r12, %rsi") LINE("mov $3, %edx") LINE("mov $0x22, %r10d") LINE(
		"or $-1, %r8") LINE("xor %r9d, %r9d") LINE("syscall") LINE("inject_code_mapped:") LINE("mov %rax, %rbx")
                LINE("cmp $-4096, %rax") LINE("ja .Lrestore") LINE("mov " TEXT(
			AREA_FIRST) "(%rbx),"
                                    " %r14") LINE("test %r14, %r14") LINE("jz .Lunmap") LINE("mov "
                                                                                             "%rsp,"
                                                                                             " %"
                                                                                             "rbp") LINE("lea "
                                                                                                         "(%rbx, "
                                                                                                         "%r12), "
                                                                                                         "%rsp")
                        LINE("cld") LINE("mov " TEXT(AREA_STATE) "(%rbx), %rdi") LINE(
				"or $-1, "
				"%eax") LINE("or "
                                             "$-"
                                             "1, "
                                             "%ed"
                                             "x") LINE("cmpq $0, " TEXT(AREA_XSAVE) "(%rbx)")
                                LINE("je 1f") LINE("xsave64 (%rdi)") LINE("jmp 2f") LINE(
					"1: fxsave64 (%rdi)") LINE("2: call *" TEXT(AREA_ERRNO) "(%"
                                                                                                "rb"
                                                                                                "x"
                                                                                                ")")
                                        LINE("mov %rax, " TEXT(AREA_ERRNO_ADDRESS) "(%rbx)") LINE(
						"mov (%rax), "
						"%eax") LINE("mo"
                                                             "v "
                                                             "%r"
                                                             "ax"
                                                             ","
                                                             " " TEXT(AREA_ERRNO_VALUE) "(%rbx)")

                                                LINE(".Lstep:") LINE("mov " TEXT(
							STEP_LOADS) "(%"
                                                                    "r14),"
                                                                    " %"
                                                                    "r15") ARGUMENT(0,
                                                                                    "%rdi") ARGUMENT(1,
                                                                                                     "%rsi")
                                                        ARGUMENT(2, "%rdx") ARGUMENT(3, "%r10") ARGUMENT(4, "%r8") ARGUMENT(
								5,
								"%"
								"r"
								"9") LINE("mov " TEXT(STEP_CODE) "("
                                                                                                 "%"
                                                                                                 "r"
                                                                                                 "1"
                                                                                                 "4"
                                                                                                 ")"
                                                                                                 ","
                                                                                                 " "
                                                                                                 "%"
                                                                                                 "r"
                                                                                                 "a"
                                                                                                 "x") LINE("bt"
                                                                                                           " $"
                                                                                                           "6,"
                                                                                                           " %"
                                                                                                           "r1"
                                                                                                           "5") LINE("jnc 1f")
                                                                LINE("m"
                                                                     "o"
                                                                     "v"
                                                                     " "
                                                                     "("
                                                                     "%"
                                                                     "r"
                                                                     "a"
                                                                     "x"
                                                                     ")"
                                                                     ","
                                                                     " "
                                                                     "%"
                                                                     "r"
                                                                     "a"
                                                                     "x") LINE("1: test "
                                                                               "%rax, %rax") LINE("jz "
                                                                                                  ".Lfaile"
                                                                                                  "d") LINE("cmp $4096, "
                                                                                                            "%rax")
                                                                        LINE("j"
                                                                             "a"
                                                                             "e"
                                                                             " "
                                                                             "2"
                                                                             "f") LINE("syscall") LINE("inject_code_"
                                                                                                       "stepped:") LINE("jmp 3f")
                                                                                LINE("2: mov "
                                                                                     "%r10, "
                                                                                     "%rcx") LINE("call "
                                                                                                  "*%"
                                                                                                  "rax") LINE("3:"
                                                                                                              " m"
                                                                                                              "ov"
                                                                                                              " "
                                                                                                              "%r"
                                                                                                              "ax"
                                                                                                              ","
                                                                                                              " " TEXT(
														      STEP_RESULT) "(%r14)")
                                                                                        LINE("mov"
                                                                                             " " TEXT(
												     STEP_FAILS) "(%r14), %ecx")
                                                                                                LINE("cm"
                                                                                                     "p "
                                                                                                     "$1"
                                                                                                     ", "
                                                                                                     "%e"
                                                                                                     "c"
                                                                                                     "x") LINE("jb .Lnext") LINE("je "
                                                                                                                                 "4f")
                                                                                                        LINE("cm"
                                                                                                             "p "
                                                                                                             "$2"
                                                                                                             ", "
                                                                                                             "%e"
                                                                                                             "c"
                                                                                                             "x") LINE("je 5f")
                                                                                                                LINE("test %eax, %eax") /* FAILS_NONZERO */
        LINE("jnz .Lfailed") LINE("jmp .Lnext") LINE("4: cmp $-4096, %rax") /* FAILS_ERROR */
        LINE("ja .Lfailed") LINE("jmp .Lnext") LINE("5: test %rax, %rax")   /* FAILS_ZERO */
        LINE("jz .Lfailed") LINE(".Lnext: add $" TEXT(STEP_BYTES) ", %r14") LINE("jmp .Lstep") LINE(
		".Lfailed: mov " TEXT(STEP_OTHERWISE) "(%r14), %r14") LINE("test %r14, %r14")
                LINE("jnz .Lstep")

                        LINE("mov " TEXT(AREA_ERRNO_ADDRESS) "(%rbx), %rax") LINE("mov " TEXT(
				AREA_ERRNO_VALUE) "(%rbx), %ecx") LINE("mov %ecx, (%rax)")
                                LINE("mov " TEXT(AREA_STATE) "(%rbx), %rdi") LINE("or $-1, %eax")
                                        LINE("or $-1, %edx")
                                                LINE("cmpq $0, " TEXT(AREA_XSAVE) "(%rbx)")
                                                        LINE("je 1f") LINE("xrstor64 (%rdi)")
                                                                LINE("jmp 2f")
                                                                        LINE("1: fxrstor64 (%rdi)")

        /* Signals that came: does a handler's end the interrupted call? */
        LINE("2: cmpq $0, " TEXT(FRAME_INTERRUPTS) "(%rbp)") LINE("je .Lback")
                LINE("mov $127, %eax") /* rt_sigpending */
        LINE("lea " TEXT(AREA_PENDING) "(%rbx), %rdi") LINE("mov $8, %esi") LINE("syscall")
                LINE("mov " TEXT(FRAME_MASK) "(%rbp), %r14") LINE("not %r14") LINE(
			"and " TEXT(AREA_PENDING) "(%rbx), %r14") LINE(".Lsignal: bsf %r14, %r15")
                        LINE("jz .Lback") LINE("btr %r15, %r14")
                                LINE("mov $13, %eax") /* rt_sigaction(r15 + 1, NULL, action, 8) */
        LINE("lea 1(%r15), %edi") LINE("xor %esi, %esi")
                LINE("lea " TEXT(AREA_ACTION) "(%rbx), %rdx") LINE("mov $8, %r10d") LINE("syscall")
                        LINE("cmpq $1, " TEXT(AREA_ACTION) "(%rbx)") /* SIG_DFL, SIG_IGN */
        LINE("jbe .Lsignal") LINE("cmpq $1, " TEXT(FRAME_INTERRUPTS) "(%rbp)") LINE("je 1f")
                LINE("testl $0x10000000, " TEXT(AREA_ACTION) "+8(%rbx)") /* SA_RESTART */
        LINE("jnz .Lsignal")
                LINE("1: movq $-4, " TEXT(FRAME_RAX) "(%rbp)") /* EINTR, behind the call */
        LINE("addq $2, " TEXT(FRAME_RIP) "(%rbp)") LINE(".Lback: mov %rbp, %rsp")

                LINE(".Lunmap:") LINE("mov $11, %eax") /* munmap */
        LINE("mov %rbx, %rdi") LINE("mov %r12, %rsi") LINE("syscall") LINE(".Lrestore:")
                LINE("mov $14, %eax") /* rt_sigprocmask(SIG_SETMASK, &frame->mask, NULL, 8) */
        LINE("mov $2, %edi") LINE("lea " TEXT(FRAME_MASK) "(%rsp), %rsi") LINE("xor %edx, %edx")
                LINE("mov $8, %r10d") LINE("syscall") LINE("lea " TEXT(FRAME_FLAGS) "(%rsp), %rsp")
                        LINE("popfq") LINE("pop %r15") LINE("pop %r14") LINE("pop %r13") LINE(
				"pop %r12") LINE("pop %rbp") LINE("pop %rbx") LINE("pop %r11")
                                LINE("pop %r10") LINE("pop %r9") LINE("pop %r8") LINE("pop %rax")
                                        LINE("pop %rdx") LINE("pop %rsi") LINE("pop %rdi")
                                                LINE("pop %rcx") LINE("pop %rsp")
                                                        LINE("jmp *%rcx") /* no ret: shadow stacks
                                                                             know nothing of it */

        LINE("inject_code_length:") LINE("xor %eax, %eax") LINE("1: cmpb $0, (%rdi, %rax)")
                LINE("je 2f") LINE("inc %eax")
                        LINE("cmp $700, %eax") /* as much as a struct err holds */
        LINE("jb 1b") LINE("2: ret") LINE("inject_code_end:") LINE(".popsection"));

#else

const uint8_t inject_code[1], inject_code_end[1], inject_code_mapped[1], inject_code_stepped[1],
	inject_code_length[1];

#endif
