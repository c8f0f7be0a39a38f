/* SPDX-License-Identifier: MIT */
/*
 * Xids: the numbers under which NVIDIA's driver reports what went wrong with a GPU. Meanings in a
 * few words, and which errors of CUDA's a program sees of them.
 */
#ifndef CUSCOPE_CUDA_XID_H
#define CUSCOPE_CUDA_XID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xid {
	uint32_t number;
	const char *name;    /* "GPU memory page fault" */
	const char *meaning; /* a sentence or two */
	bool program;        /* mostly a fault of the program, not of the machine */
};

const struct xid *xid_find(uint32_t number); /* NULL: not known */

/* What the driver says of one, or a line of the kernel's log that has it. */
struct xid_text {
	uint32_t number; /* 0 in what has none */
	uint32_t pid;    /* 0: none is named */
	char device[32]; /* "0000:18:00", as the driver writes it; "": not known */
	char name[32];   /* of the process; "": not known */
	char text[160];  /* what follows these */
};

/* "NVRM: Xid (PCI:0000:18:00): 31, pid=4242, name=train, Ch 00000010, ..."; false: it is none. */
bool xid_parse_line(const char *line, struct xid_text *xid);

/* "pid=4242, name=train, Ch 00000010, ...": number and device are left as they are. */
void xid_parse_text(const char *text, struct xid_text *xid);

#endif
