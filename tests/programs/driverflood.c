// SPDX-License-Identifier: MIT
/*
 * Who makes as much of a trace's kernel side as it can: system calls to a device in a tight loop,
 * each with another number, and parameters that lead nowhere.
 *
 *   driverflood DEVICE CALLS
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define RM_CONTROL 0xc020462au
#define RM_XFER    0xc01046d3u

int main(int argc, char **argv)
{
	struct {
		uint32_t client, object, command, flags;
		uint64_t params;
		uint32_t bytes, status;
	} block = { .client = 0xc1d00001, .bytes = 1u << 31, .params = ~0ull };
	struct {
		uint32_t number, bytes;
		uint64_t block;
	} transfer = { 0x2a, ~0u, (uintptr_t)&block };
	int device = argc > 2 ? open(argv[1], O_RDWR) : -1;
	long calls = argc > 2 ? atol(argv[2]) : 0;

	if (device < 0)
		return 1;
	for (long i = 0; i < calls; i++) {
		block.command = 0x11110000u + (uint32_t)i;
		ioctl(device, i % 2 ? RM_XFER : RM_CONTROL, i % 2 ? (void *)&transfer : &block);
	}
	printf("%ld\n", calls);
	return 0;
}
