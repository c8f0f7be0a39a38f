// SPDX-License-Identifier: MIT
#include "agent/lib/peek.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE       4096ull /* or a part of one, where they are larger */
#define PAGES_MOST 16      /* that are looked at in one call */
#define REACH      (PAGES_MOST * PAGE)
#define STACK_MOST (1ull << 30)
#define USER_END   (1ull << 47) /* addresses above fault in other ways, or are another kernel's */

static pid_t own_pid;
static bool may_call;

void peek_prepare(bool calls)
{
	own_pid = getpid();
	__atomic_store_n(&may_call, calls, __ATOMIC_RELEASE);
}

static uint64_t page_of(uint64_t address)
{
	return address & ~(PAGE - 1);
}

/* ---- the stack ----------------------------------------------------------------------------- */

static uint64_t thread_pointer(void)
{
	uint64_t at;

#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(at));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(at));
#endif
	return at;
}

/* glibc has a thread's own data at the end of its stack; the kernel has sixteen bytes of chance
 * above that of the first thread. */
void peek_thread(struct peek *peek, uint64_t sp)
{
	uint64_t ends[] = { thread_pointer(), getauxval(AT_RANDOM) };

	*peek = (struct peek){ 0 };
	for (int i = 0; i < 2; i++) {
		if (ends[i] > sp && ends[i] - sp < STACK_MOST)
			peek->top = peek->top && peek->top < ends[i] ? peek->top : ends[i];
	}
}

/* How many pages, from one address up to another, are there before one that is not: one byte of
 * each is read. -1: it cannot be looked, or they are too many. */
static ssize_t pages_there(uint64_t from, uint64_t to)
{
	struct iovec theirs[PAGES_MOST];
	char bytes[PAGES_MOST];
	struct iovec ours = { bytes, 0 };
	int error = errno;
	ssize_t got;

	for (; from < to && ours.iov_len < PAGES_MOST; from += PAGE)
		theirs[ours.iov_len++] = (struct iovec){ (void *)from, 1 };
	if (from < to || !__atomic_load_n(&may_call, __ATOMIC_ACQUIRE))
		return -1;
	got = process_vm_readv(own_pid, &ours, 1, theirs, ours.iov_len, 0);
	if (got < 0)
		got = errno == EFAULT ? 0 : -1;
	errno = error;
	return got;
}

/* Whether all are. */
static bool pages_are_there(uint64_t from, uint64_t to)
{
	return pages_there(from, to) == (ssize_t)((to - from + PAGE - 1) / PAGE);
}

uint64_t peek_hole(uint64_t from, uint64_t to)
{
	uint64_t end = page_of(to) + PAGE;

	from = page_of(from);
	if (end - from > 16 * REACH)
		end = from + 16 * REACH;
	while (from < end) {
		uint64_t next = end - from < REACH ? end : from + REACH;
		ssize_t there = pages_there(from, next);

		if (there < 0)
			return 0;
		from += (uint64_t)there * PAGE;
		if (from < next)
			return from;
	}
	return 0;
}

bool peek_is_one_stack(uint64_t from, uint64_t to)
{
	if (to - from > 16 * REACH)
		return false;
	for (from = page_of(from); from + REACH < to; from += REACH) {
		if (!pages_are_there(from, from + REACH))
			return false;
	}
	return pages_are_there(from, to + 1);
}

/* A stack that grew, or another one. */
static void follow(struct peek *peek, uint64_t sp)
{
	uint64_t page = page_of(sp);

	if (sp >= peek->low && sp < peek->high)
		return;
	if (peek->low > sp && peek->low - page <= REACH &&
	    pages_are_there(page + PAGE, peek->low)) {
		peek->low = page;
		return;
	}
	peek->low = page;
	peek->high = page + PAGE;
}

bool peek_is_stack(struct peek *peek, uint64_t sp, uint64_t from, size_t bytes)
{
	uint64_t end = from + bytes;

	if (from < sp || end < from)
		return false;
	if (end <= page_of(sp) + PAGE)
		return true;
	if (end > peek->top || end - sp > STACK_MOST)
		return false;
	follow(peek, sp);
	if (end <= peek->high)
		return true;
	if (end - peek->high > REACH || !pages_are_there(peek->high, end))
		return false;
	peek->high = page_of(end - 1) + PAGE;
	return true;
}

/* ---- anywhere ------------------------------------------------------------------------------ */

static size_t read_some(void *to, uint64_t from, size_t bytes)
{
	struct iovec ours = { to, bytes }, theirs = { (void *)from, bytes };
	int error = errno;
	ssize_t got;

	if (!__atomic_load_n(&may_call, __ATOMIC_ACQUIRE))
		return 0;
	got = process_vm_readv(own_pid, &ours, 1, &theirs, 1, 0);
	errno = error;
	return got > 0 ? (size_t)got : 0;
}

/* Not by memcpy: of a stack, sanitizers say that parts of it are not to be read. */
__attribute__((no_sanitize("address", "thread"))) static void copy(char *to, uint64_t from,
                                                                   size_t bytes)
{
	const volatile char *at = (const volatile char *)from;

	for (; bytes >= 8; bytes -= 8, to += 8, at += 8)
		*(uint64_t *)to = *(const volatile uint64_t *)at;
	for (size_t i = 0; i < bytes; i++)
		to[i] = at[i];
}

bool peek_read(struct peek *peek, uint64_t sp, void *to, uint64_t from, size_t bytes)
{
	if (!peek_is_stack(peek, sp, from, bytes))
		return read_some(to, from, bytes) == bytes;
	copy(to, from, bytes);
	return true;
}

bool peek_written(struct peek *peek, uint64_t sp, void *to, uint64_t from, size_t bytes)
{
	if (page_of(from) != page_of(from + bytes - 1) || from >= USER_END)
		return peek_read(peek, sp, to, from, bytes);
	copy(to, from, bytes);
	return true;
}

/* A page at a time: the next one need not be there. */
size_t peek_text(char *to, uint64_t from, size_t size, bool *cut)
{
	size_t n = 0;

	*cut = false;
	while (n < size) {
		size_t want = PAGE - (from + n) % PAGE, got;
		const char *end;

		want = want < size - n ? want : size - n;
		got = read_some(to + n, from + n, want);
		end = memchr(to + n, 0, got);
		if (end)
			return (size_t)(end - to) + 1;
		if (got < want)
			return 0;
		n += got;
	}
	*cut = true;
	to[size - 1] = '\0';
	return size;
}
