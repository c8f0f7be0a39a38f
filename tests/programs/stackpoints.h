/* SPDX-License-Identifier: MIT */
/* What the files of stackpoints share: see stackpoints.cc. */
#ifndef STACKPOINTS_H
#define STACKPOINTS_H

#include <csignal>

/* A call of such a function is a call: it is neither put into its caller nor known to it. */
#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))
#endif
#define NOT_LAST() asm volatile("" ::: "memory")

/* Writes down this stack, and allocates. */
extern "C" void point(void);

/* How many there were. */
unsigned points(void);

/* The handler of a signal makes no point while this is not 0. */
extern thread_local volatile sig_atomic_t busy;

/* The same numbers in each run. */
unsigned any_number(unsigned below);

void dive(unsigned depth);  /* a point under so many calls */
void swell(unsigned depth); /* the same, in frames whose size is known when they run */
void in_recursion(void);

void set_handler(int number, int flags); /* which makes a point */

struct on_leave { /* a point while an exception goes by */
	~on_leave()
	{
		dive(any_number(4));
	}
};

struct way { /* to a point */
	const char *name;
	void (*run)(void);
};

extern const struct way ways_of_calls[], ways_of_libraries[]; /* the last one has no name */
extern const char *library;                                   /* libframelib.so */

#endif
