// SPDX-License-Identifier: MIT
/* A library that frames.c opens: its functions stand between two of the program's. */
#define APART __attribute__((noipa))

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
