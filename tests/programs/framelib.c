// SPDX-License-Identifier: MIT
/* A library that frames.c opens: its functions stand between two of the program's. */
#define APART __attribute__((noipa))

#ifdef WITH_A_TABLE /* of another function, far from these */
__asm__(".text\ntabled: .cfi_startproc\nret\n.cfi_endproc\n.fill 64, 1, 0x90\n");
#endif

static void deeper(void (*function)(void)) APART;
static void deeper(void (*function)(void))
{
	function();
	asm volatile("" ::: "memory");
}

void call_back(void (*function)(void));
void call_back(void (*function)(void))
{
	deeper(function);
	asm volatile("" ::: "memory");
}
