/* SPDX-License-Identifier: MIT */
/* The functions of libhooked.so.1, which hooks of one's own are tested with. */
#ifndef TESTS_HOOKLIB_H
#define TESTS_HOOKLIB_H

#include <stddef.h>
#include <stdint.h>

struct hooked_inner {
	uint64_t before;
	int16_t deep;
};

struct hooked_request {
	uint32_t question;
	uint32_t answer;
	struct hooked_inner *inner;
	char label[16];
};

int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
                  void *stream);
long hooked_fill(struct hooked_request *request, const char *name);
int hooked_recurse(int depth);
void hooked_jump(void *to);
void hooked_mark(int n);

#endif
