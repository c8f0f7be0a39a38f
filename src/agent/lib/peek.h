/* SPDX-License-Identifier: MIT */
/*
 * Memory of the program, read where a pointer may be wrong: without a fault, and without a signal
 * handler of ours. The stack of the calling thread is read directly, as far as its pages were seen
 * to be there, and so is what a function has just written; all else by process_vm_readv of the
 * process itself, a system call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pages of a thread's stack that were seen: all from `low` to `high`. All zeroes: none. */
struct peek {
	uint64_t low, high;
	uint64_t top; /* the stack is no longer than this; 0: not known */
};

/* `calls`: whether the process may call process_vm_readv. Before all others, and after fork. */
void peek_prepare(bool calls);

/* For the calling thread, whose stack pointer is `sp`. */
void peek_thread(struct peek *peek, uint64_t sp);

/* Whether this lies on the stack above `sp` and can be read directly. Keeps errno, as all do. */
bool peek_is_stack(struct peek *peek, uint64_t sp, uint64_t from, size_t bytes);

/* Whether memory goes on all the way from one place to another, of at most 1 MiB. Slow. */
bool peek_is_one_stack(uint64_t from, uint64_t to);

/*
 * The first page that is not there, from one place up to another, and of at most 1 MiB. 0: there is
 * none, or it cannot be looked. Slow.
 */
uint64_t peek_hole(uint64_t from, uint64_t to);

/* False: it cannot be read, not all of it. */
bool peek_read(struct peek *peek, uint64_t sp, void *to, uint64_t from, size_t bytes);

/*
 * What a function has just written there, as it has said: `from` is an output, and the call
 * succeeded. So the page is there, and is read directly: a system call would cost several times
 * what all else does. What crosses into another page is read as above, since a function may write
 * less than is asked for here.
 */
bool peek_written(struct peek *peek, uint64_t sp, void *to, uint64_t from, size_t bytes);

/*
 * A text and its NUL, of which at most `size` bytes; `to` always ends. Returns the bytes with the
 * NUL, 0 where nothing can be read. `*cut`: it is longer.
 */
size_t peek_text(char *to, uint64_t from, size_t size, bool *cut);
