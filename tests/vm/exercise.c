// SPDX-License-Identifier: MIT
/*
 * A program on the stand-in driver (tests/vm/driver), which does known numbers of things, in the
 * order of its arguments:
 *
 *   exercise context alloc=3 managed=16 touch=16 migrate gpufaults=8 wait=2 xid=31
 *
 * It has CUDA functions of its own, so ioctls are made within calls that cuscope hooks. The first
 * one that fails ends it with status 1. What each word does stands beside its function. One line
 * tells the tgid, the address of managed memory and its length.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/vm/driver/standin.h"

#define PAGE          4096ul
#define MIGRATE_BYTES (64ul << 10) /* of a GPU's fault, and of an eviction */

noipa int cuInit(unsigned int flags);
noipa int cudaMalloc(void **pointer, size_t bytes);
noipa int cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags);
noipa int cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, void *stream);
noipa int cudaFree(void *pointer);
noipa int cudaStreamSynchronize(void *stream);
noipa int cudaDeviceSynchronize(void);
noipa int cudaLaunchKernel(void);

static struct exercise {
	int ctl, gpu, uvm;
	__u32 client, device, subdevice, group, channel;
	char *managed;
	size_t managed_bytes;
	int result; /* of cudaDeviceSynchronize */
} all = { -1, -1, -1 };

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the driver ---------------------------------------------------------------------------- */

static int escape(int fd, unsigned int nr, void *params, size_t bytes)
{
	return ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', nr, bytes), params);
}

static __u32 rm_alloc_with(__u32 parent, __u32 class, void *params, size_t bytes)
{
	struct rm_alloc alloc = { .root = all.client,
		                  .parent = parent,
		                  .class = class,
		                  .params = (unsigned long)params,
		                  .params_size = bytes };

	if (escape(all.ctl, RM_ALLOC, &alloc, sizeof(alloc)) || alloc.status)
		fail("RM_ALLOC");
	return alloc.object;
}

static __u32 rm_alloc(__u32 parent, __u32 class)
{
	return rm_alloc_with(parent, class, NULL, 0);
}

static __u32 rm_control(__u32 object, __u32 cmd, void *params, size_t bytes)
{
	struct rm_control control = { .client = all.client,
		                      .object = object,
		                      .cmd = cmd,
		                      .params = (unsigned long)params,
		                      .params_size = bytes };

	if (escape(all.ctl, RM_CONTROL, &control, sizeof(control)))
		fail("RM_CONTROL");
	return control.status;
}

static void rm_map(__u32 memory)
{
	struct rm_map map = { .client = all.client,
		              .device = all.device,
		              .memory = memory,
		              .length = 64 << 10,
		              .fd = all.gpu };
	void *at;

	if (escape(all.ctl, RM_MAP_MEMORY, &map, sizeof(map)) || map.status)
		fail("RM_MAP_MEMORY");
	at = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_SHARED, all.gpu, 0);
	if (at == MAP_FAILED)
		fail("mmap of nvidia0");
	munmap(at, 64 << 10);
}

static void open_devices(void)
{
	all.ctl = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	all.gpu = open("/dev/nvidia0", O_RDWR | O_CLOEXEC);
	all.uvm = open("/dev/nvidia-uvm", O_RDWR | O_CLOEXEC);
	if (all.ctl < 0 || all.gpu < 0 || all.uvm < 0)
		fail("/dev/nvidia*");
}

static void make_channel(void)
{
	__u64 timeslice_us = 2000;
	__u32 token = 0;
	struct rm_channel channel = { .engine = 1 };
	struct rm_preemption preemption = { .flags = 1, .compute = 2 };
	__u8 enable = 1;

	all.group = rm_alloc(all.device, 0xa06c);
	all.channel = rm_alloc_with(all.group, 0xc86f, &channel, sizeof(channel));
	preemption.channel = all.group;
	rm_alloc(all.channel, 0xcbc0);
	if (rm_control(all.channel, 0xc36f0108, &token, sizeof(token)) || token != 0x30021)
		fail("the token");
	if (rm_control(all.group, 0xa06c0103, &timeslice_us, sizeof(timeslice_us)) ||
	    rm_control(all.subdevice, 0x20801210, &preemption, sizeof(preemption)) ||
	    rm_control(all.group, 0xa06c0101, &enable, sizeof(enable)))
		fail("the group");
}

/* 3 opens, 16 ioctls (9 of them allocations and 4 controls), one mmap of nvidia0 */
int cuInit(unsigned int flags)
{
	struct nv_version version = { 0 };
	struct uvm_initialize initialize = { 0 };
	struct uvm_register_gpu gpu = { .uuid = "GPU" };

	open_devices();
	if (escape(all.ctl, NV_CHECK_VERSION_STR, &version, sizeof(version)) || !version.reply)
		fail("the version");
	all.client = rm_alloc(0, 0x41);
	all.device = rm_alloc(all.client, 0x80);
	all.subdevice = rm_alloc(all.device, 0x2080);
	rm_alloc(all.device, 0x90f1);
	if (ioctl(all.uvm, UVM_INITIALIZE, &initialize) || ioctl(all.uvm, UVM_REGISTER_GPU, &gpu))
		fail("nvidia-uvm");
	make_channel();
	rm_map(rm_alloc(all.subdevice, 0xc661));
	return rm_control(all.subdevice, 0x2080200a, NULL, 0);
}

/* ---- the runtime --------------------------------------------------------------------------- */

/* 2 ioctls, the first of them wrapped in XFER_CMD. */
int cudaMalloc(void **pointer, size_t bytes)
{
	static unsigned long next = 0x7f0000000000;
	struct rm_alloc alloc = { .root = all.client, .parent = all.device, .class = 0x40 };
	struct nv_xfer xfer = { RM_ALLOC, sizeof(alloc), (unsigned long)&alloc };
	struct uvm_range range = { .base = next, .length = bytes };

	if (escape(all.gpu, NV_XFER_CMD, &xfer, sizeof(xfer)) || alloc.status)
		fail("RM_ALLOC by XFER_CMD");
	if (ioctl(all.uvm, UVM_CREATE_EXTERNAL_RANGE, &range))
		fail("UVM_CREATE_EXTERNAL_RANGE");
	*pointer = (void *)next;
	next += 2 << 20;
	return 0;
}

/* One mmap of nvidia-uvm, at an offset that is the address. */
int cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags)
{
	static unsigned long next = 0x7e0000000000;
	void *at = mmap((void *)next, bytes, PROT_READ | PROT_WRITE,
	                MAP_SHARED | MAP_FIXED_NOREPLACE, all.uvm, next);

	if (at == MAP_FAILED)
		fail("mmap of nvidia-uvm");
	next += (bytes | ((2 << 20) - 1)) + 1;
	*pointer = at;
	return 0;
}

/* One ioctl, and a migration for each 2 MiB. */
int cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, void *stream)
{
	struct uvm_migrate migrate = { .base = (unsigned long)pointer, .length = bytes };

	if (device >= 0)
		memcpy(migrate.uuid, "GPU", 3);
	if (ioctl(all.uvm, UVM_MIGRATE, &migrate) || migrate.status)
		fail("UVM_MIGRATE");
	return 0;
}

int cudaFree(void *pointer)
{
	struct uvm_range range = { .base = (unsigned long)pointer };

	if (ioctl(all.uvm, UVM_FREE, &range))
		fail("UVM_FREE");
	return 0;
}

/* An event that comes 50 ms later, and a poll that waits for it. */
int cudaStreamSynchronize(void *stream)
{
	struct standin_event event = { 50000 };
	struct pollfd wait = { all.ctl, POLLIN, 0 };

	if (ioctl(all.ctl, STANDIN_EVENT, &event))
		fail("the event");
	if (poll(&wait, 1, 5000) != 1)
		fail("poll");
	return 0;
}

int cudaDeviceSynchronize(void)
{
	return all.result;
}

/* Which is never called: by this one cuscope knows a program that has the runtime in it. */
int cudaLaunchKernel(void)
{
	return 0;
}

/* ---- words --------------------------------------------------------------------------------- */

static void context(long n)
{
	if (cuInit(0))
		fail("cuInit");
}

static void alloc(long n)
{
	for (void *at; n > 0; n--)
		cudaMalloc(&at, 1 << 20);
}

static void managed(long pages) /* so many pages of managed memory */
{
	all.managed_bytes = pages * PAGE;
	cudaMallocManaged((void **)&all.managed, all.managed_bytes, 1);
}

static void touch(long pages) /* a fault of the host for each page that is not there */
{
	for (long i = 0; i < pages; i++)
		*(volatile char *)(all.managed + i * PAGE) = 1;
}

static void migrate(long n) /* all of it to the GPU, so many times */
{
	for (; n > 0; n--)
		cudaMemPrefetchAsync(all.managed, all.managed_bytes, 0, NULL);
}

static void hardware(unsigned long cmd, long n)
{
	struct standin_gpu ask = { (unsigned long)all.managed, PAGE, MIGRATE_BYTES, n, 1 };

	if (ioctl(all.uvm, cmd, &ask))
		fail("the stand-in's GPU");
}

static void gpufaults(long n)
{
	hardware(STANDIN_FAULTS, n);
}

static void evict(long n)
{
	hardware(STANDIN_EVICTIONS, n);
}

static void thrash(long n)
{
	hardware(STANDIN_THRASHING, n);
}

static void fatal(long n)
{
	hardware(STANDIN_FATAL, n);
}

static void wait_for(long n)
{
	for (; n > 0; n--)
		cudaStreamSynchronize(NULL);
}

static void xid(long number) /* this one, and then a call that fails of it */
{
	struct standin_xid ask = { number, getpid() };

	if (ioctl(all.ctl, STANDIN_XID, &ask))
		fail("the Xid");
	all.result = 700;
	cudaDeviceSynchronize();
}

static void unknown(long n) /* ioctls that neither device has */
{
	for (char params[8]; n > 0; n--)
		if (!escape(all.ctl, 199, params, sizeof(params)) || !ioctl(all.uvm, 1999, params))
			fail("an unknown number was answered");
}

static void pause_ms(long ms)
{
	usleep(ms * 1000);
}

static void stop(long n) /* until a line comes on stdin */
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static const struct word {
	const char *name;
	void (*run)(long n);
} words[] = {
	{ "context", context }, { "alloc", alloc },     { "managed", managed },
	{ "touch", touch },     { "migrate", migrate }, { "gpufaults", gpufaults },
	{ "evict", evict },     { "thrash", thrash },   { "fatal", fatal },
	{ "wait", wait_for },   { "xid", xid },         { "unknown", unknown },
	{ "pause", pause_ms },  { "stop", stop },
};

static void run(const char *argument)
{
	size_t length = strcspn(argument, "=");

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i].name) == length && !strncmp(argument, words[i].name, length)) {
			words[i].run(argument[length] ? strtol(argument + length + 1, NULL, 0) : 1);
			return;
		}
	}
	fprintf(stderr, "%s: no such word\n", argument);
	exit(2);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	printf("%d %p %zu\n", getpid(), (void *)all.managed, all.managed_bytes);
	return 0;
}
