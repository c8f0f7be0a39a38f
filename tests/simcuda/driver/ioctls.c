// SPDX-License-Identifier: MIT
#include "ioctls.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define FRONTEND(nr, bytes) (0xc0000000u | (unsigned)(bytes) << 16 | 0x4600u | (nr))
#define CLIENT              0xc1d00001u
#define GROUP               0xcaf00007u
#define NO_MEMORY           0x51u

static int control = -1, uvm = -1;

struct control_block { /* NVOS54 */
	uint32_t client, object, command, flags;
	const void *params;
	uint32_t bytes, status;
};

struct alloc_block { /* NVOS64 */
	uint32_t root, parent, object, class;
	const void *params, *rights;
	uint32_t bytes, flags, status, unused;
};

static void control_object(uint32_t object, uint32_t command, const void *params, uint32_t bytes)
{
	struct control_block block = { CLIENT, object, command, 0, params, bytes, 0 };

	ioctl(control, FRONTEND(0x2a, sizeof(block)), &block);
}

/* The way of large blocks, which may be any. */
static void control_by_transfer(uint32_t object, uint32_t command)
{
	struct control_block block = { CLIENT, object, command, 0, NULL, 0, 0 };
	const struct {
		uint32_t number, bytes;
		const void *block;
	} transfer = { 0x2a, sizeof(block), &block };

	ioctl(control, FRONTEND(0xd3, sizeof(transfer)), &transfer);
}

static void alloc_object(uint32_t object, uint32_t class, const void *params, uint32_t bytes)
{
	struct alloc_block block = { .root = CLIENT,
		                     .parent = CLIENT,
		                     .object = object,
		                     .class = class,
		                     .params = params,
		                     .bytes = bytes };

	ioctl(control, FRONTEND(0x2b, sizeof(block)), &block);
}

static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_devices(void)
{
	const char *text = getenv("SIMCUDA_DRIVER");
	char first[128], second[128];

	if (!text || sscanf(text, "%127[^,],%127s", first, second) != 2)
		return;
	control = open(first, O_RDWR | O_CLOEXEC);
	uvm = open(second, O_RDWR | O_CLOEXEC);
}

void ioctls_of_init(void)
{
	const uint64_t timeslice_us = 2048;
	struct pollfd polled = { .events = POLLIN };
	void *mapped;

	pthread_once(&opened, open_devices);
	if (control < 0 || uvm < 0)
		return;
	alloc_object(CLIENT, 0x41, NULL, 0);
	alloc_object(GROUP, 0xa06c, NULL, 0);
	control_object(GROUP, 0xa06c0103, &timeslice_us, sizeof(timeslice_us));
	control_by_transfer(GROUP, 0xa06c0101);
	control_object(GROUP, 0x12345678, NULL, 0);
	ioctl(control, FRONTEND(0x63, 8), &timeslice_us);
	ioctl(control, FRONTEND(0x2a, 32), (void *)8); /* what is not there */
	mapped = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE, uvm, 0);
	if (mapped != MAP_FAILED)
		munmap(mapped, 65536);
	polled.fd = control;
	poll(&polled, 1, 1);
}

/*
 * Number 2 of UVM is one that the kernel itself answers for any file (FIGETBSZ): it succeeds, and
 * writes the size of a block into the first four bytes.
 */
void ioctls_of_alloc(size_t bytes)
{
	uint64_t params[16] = { [8] = bytes };
	struct {
		uint64_t base, length;
		uint32_t status;
	} range = { 0x7f0000000000, bytes, 0 };

	if (control < 0 || uvm < 0)
		return;
	alloc_object(0xcaf00009, 0x40, params, sizeof(params));
	ioctl(uvm, 2, &range);
	range.status = NO_MEMORY;
	ioctl(uvm, 2, &range);
}
