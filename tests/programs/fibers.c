// SPDX-License-Identifier: MIT
/*
 * fibers [ROUNDS [FIBERS [GUARDED [WHERE]]]]: fibers (makecontext) that make calls in turns. Each
 * is in a call, and in a second one within it, while the others make theirs; so calls of one thread
 * overlap without being nested, and end in the order in which they began. Between its fibers the
 * thread that runs them makes calls of its own. GUARDED 0: their stacks lie side by side, with
 * nothing between. WHERE 1: they lie above the stack of that thread, 0: below it.
 *
 * What is made within another call of the same fiber is counted as nested in it.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "sample.h"

#define MOST   16
#define STACK  (64 * 1024ul)
#define RUNNER (256 * 1024ul)

static ucontext_t home, fiber[MOST];
static bool over[MOST];
static long rounds, fibers, now;

static void go_home(void)
{
	swapcontext(&fiber[now], &home);
}

static void in_the_inner_call(void *unused)
{
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, 4096);
	go_home();
	DRIVER(cuMemFree_v2, memory);
	count("nested", 1, "cuMemAlloc_v2");
	count("nested", 1, "cuMemFree_v2");
}

static void in_the_outer_call(void *unused)
{
	go_home();
	CALL_IN(driver, cuSimCallback, in_the_inner_call, NULL);
	count("nested", 1, "cuSimCallback");
	go_home();
}

static void run(void)
{
	char room[1024]; /* of a function that is not known, words of the stack are copied */

	__asm__ volatile("" : : "r"(room) : "memory");
	for (long i = 0; i < rounds; i++) {
		CALL_IN(driver, cuSimCallback, in_the_outer_call, NULL);
		go_home();
		DRIVER(cuCtxSynchronize);
	}
	over[now] = true;
	go_home();
}

/* ---- who runs them ------------------------------------------------------------------------- */

static void *run_them(void *context)
{
	CUdeviceptr memory;
	long left = fibers;

	DRIVER(cuCtxSetCurrent, context);
	while (left) {
		for (now = 0; now < fibers; now++) {
			if (over[now])
				continue;
			swapcontext(&home, &fiber[now]);
			left -= over[now];
			DRIVER(cuMemAlloc_v2, &memory, 512);
			DRIVER(cuMemFree_v2, memory);
		}
	}
	return NULL;
}

static void make_fibers(char *stacks, size_t apart)
{
	for (long i = 0; i < fibers; i++) {
		getcontext(&fiber[i]);
		fiber[i].uc_stack.ss_sp = stacks + i * apart;
		fiber[i].uc_stack.ss_size = STACK;
		makecontext(&fiber[i], run, 0);
	}
}

/* The thread's stack is above those of its fibers or below them, and they are as far apart. */
int main(int argc, char **argv)
{
	CUcontext context = sample_context();
	long guarded, above;
	size_t apart;
	pthread_attr_t attributes;
	pthread_t thread;
	char *memory;

	rounds = sample_number(argc, argv, 1, 20);
	fibers = sample_number(argc, argv, 2, 4);
	guarded = sample_number(argc, argv, 3, 1);
	above = sample_number(argc, argv, 4, 0);
	if (fibers > MOST)
		sample_fail("at most %d fibers", MOST);
	apart = guarded ? 2 * STACK : STACK;
	memory = mmap(NULL, 2 * RUNNER + MOST * apart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	              0);
	if (memory == MAP_FAILED)
		sample_fail("no memory for stacks");
	for (long i = 0; i < fibers; i++)
		mprotect(memory + RUNNER + i * apart, STACK, PROT_READ | PROT_WRITE);
	memory += above ? 0 : RUNNER + MOST * apart;
	mprotect(memory, RUNNER - (above && guarded ? STACK : 0), PROT_READ | PROT_WRITE);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, memory, RUNNER - (above && guarded ? STACK : 0));
	make_fibers(memory + (above ? RUNNER : 0) - (above ? 0 : MOST * apart), apart);
	pthread_create(&thread, &attributes, run_them, context);
	pthread_join(thread, NULL);
	return sample_end();
}
