// SPDX-License-Identifier: MIT
#include "entry_run.h"

#include <setjmp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* Of the child only: code that runs cannot carry anything else along. */
struct run_state *run_now;
uint64_t run_own_stack, run_entry;
static const struct run *run_asked;
static sigjmp_buf run_ended;
static uint8_t run_signal_stack[65536];

_Static_assert(offsetof(struct run_state, flags) == 128, "as in the code below");

/* Loads what run_now says, and jumps to run_entry; the exit stores it again. */
__asm__(".pushsection .text\n"
        ".globl run_load\n"
        "run_load:\n"
        "	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	"
        "push %r15\n"
        "	mov %rsp, run_own_stack(%rip)\n"
        "	mov run_now(%rip), %rax\n"
        "	pushq 128(%rax)\n"
        "	mov 8(%rax), %rcx\n	mov 16(%rax), %rdx\n	mov 24(%rax), %rbx\n"
        "	mov 40(%rax), %rbp\n	mov 48(%rax), %rsi\n	mov 56(%rax), %rdi\n"
        "	mov 64(%rax), %r8\n	mov 72(%rax), %r9\n	mov 80(%rax), %r10\n"
        "	mov 88(%rax), %r11\n	mov 96(%rax), %r12\n	mov 104(%rax), %r13\n"
        "	mov 112(%rax), %r14\n	mov 120(%rax), %r15\n"
        "	popfq\n" /* with the trap flag, the next instructions are stepped already */
        "	mov 32(%rax), %rsp\n"
        "	mov 0(%rax), %rax\n"
        "	jmp *run_entry(%rip)\n"
        ".globl run_exit\n"
        "run_exit:\n"
        "	endbr64\n"
        "	mov %rsp, run_entry(%rip)\n"
        "	mov run_own_stack(%rip), %rsp\n"
        "	pushfq\n"
        "	push %rax\n"
        "	mov run_now(%rip), %rax\n"
        "	mov %rcx, 8(%rax)\n	mov %rdx, 16(%rax)\n	mov %rbx, 24(%rax)\n"
        "	mov %rbp, 40(%rax)\n	mov %rsi, 48(%rax)\n	mov %rdi, 56(%rax)\n"
        "	mov %r8, 64(%rax)\n	mov %r9, 72(%rax)\n	mov %r10, 80(%rax)\n"
        "	mov %r11, 88(%rax)\n	mov %r12, 96(%rax)\n	mov %r13, 104(%rax)\n"
        "	mov %r14, 112(%rax)\n	mov %r15, 120(%rax)\n"
        "	pop 0(%rax)\n"
        "	pop 128(%rax)\n"
        "	mov run_entry(%rip), %rcx\n	mov %rcx, 32(%rax)\n"
        "	cld\n"
        "	pushfq\n	andq $~0x100, (%rsp)\n	popfq\n"
        "	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	"
        "pop %rbx\n"
        "	ret\n"
        ".popsection\n");

void run_load(void);

static void take_context(const ucontext_t *context)
{
	static const int where[RUN_REGISTERS] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX,
		                                  REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		                                  REG_R8,  REG_R9,  REG_R10, REG_R11,
		                                  REG_R12, REG_R13, REG_R14, REG_R15 };

	for (int i = 0; i < RUN_REGISTERS; i++)
		run_now->reg[i] = (uint64_t)context->uc_mcontext.gregs[where[i]];
	run_now->flags = (uint64_t)context->uc_mcontext.gregs[REG_EFL];
	memcpy(run_now->vector, context->uc_mcontext.fpregs->_xmm, RUN_VECTOR);
}

static void on_step(int signal, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	uint64_t rip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];

	if (run_asked->step && !run_asked->step(&rip, run_now->steps++, run_asked->data))
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)RUN_TRAP;
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)rip;
}

static void on_fault(int signal, siginfo_t *info, void *data)
{
	const ucontext_t *context = data;

	take_context(context);
	run_now->signal = signal;
	run_now->rip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	siglongjmp(run_ended, 1);
}

static void run_in_child(const struct run *run, struct run_state *shared)
{
	const stack_t stack = { .ss_sp = run_signal_stack, .ss_size = sizeof(run_signal_stack) };
	const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	struct sigaction action = { .sa_flags = SA_ONSTACK | SA_SIGINFO };
	uint8_t vector[512] __attribute__((aligned(16)));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(5);
	sigaltstack(&stack, NULL);
	action.sa_sigaction = on_fault;
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigaction(faults[i], &action, NULL);
	action.sa_sigaction = on_step;
	sigaction(SIGTRAP, &action, NULL);
	run_now = shared;
	run_asked = run;
	run_entry = run->entry;
	memcpy(run->memory, shared->memory, RUN_MEMORY);
	if (!sigsetjmp(run_ended, 1)) {
		__asm__ volatile("fxsave %0" : "=m"(vector));
		memcpy(vector + 160, shared->vector, RUN_VECTOR);
		__asm__ volatile("fxrstor %0" : : "m"(vector));
		run_load();
		__asm__ volatile("fxsave %0" : "=m"(vector));
		memcpy(shared->vector, vector + 160, RUN_VECTOR);
	}
	memcpy(shared->memory, run->memory, RUN_MEMORY);
	_exit(0);
}

bool run_code(const struct run *run, struct run_state *state)
{
	struct run_state *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = -1;
	pid_t child;

	if (shared == MAP_FAILED)
		return false;
	memcpy(shared, state, sizeof(*shared));
	child = fork();
	if (!child)
		run_in_child(run, shared);
	if (child > 0)
		waitpid(child, &status, 0);
	memcpy(state, shared, sizeof(*state));
	munmap(shared, sizeof(*shared));
	state->flags &= RUN_FLAGS;
	return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}
