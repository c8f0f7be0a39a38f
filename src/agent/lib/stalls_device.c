// SPDX-License-Identifier: MIT
#include "agent/lib/stalls_device.h"

#include "agent/lib/glibc.h"

#include <dlfcn.h>

#define COMPUTE_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define BLACKWELL     10

#define MIB                ((size_t)1 << 20)
#define BUFFER_BYTES       (64 * MIB)
#define BUFFER_USUAL_BYTES (512 * MIB) /* CUPTI's own */
/* What is to stay free beside it: a program that allocates has no more than this to lose. */
#define SPARE_LEAST (1024 * MIB)
#define SPARE_SHARE 32 /* of all of the device's memory */

static struct {
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*memory)(size_t *free_bytes, size_t *total);
	int (*device)(int *device);
	int (*attribute)(int *value, int attribute, int device);
} driver;

bool device_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); /* never unloaded */

	if (!library)
		return false;
	driver.push = (int (*)(void *))dlsym(library, "cuCtxPushCurrent_v2");
	driver.pop = (int (*)(void **))dlsym(library, "cuCtxPopCurrent_v2");
	driver.memory = (int (*)(size_t *, size_t *))dlsym(library, "cuMemGetInfo_v2");
	driver.device = (int (*)(int *))dlsym(library, "cuCtxGetDevice");
	driver.attribute = (int (*)(int *, int, int))dlsym(library, "cuDeviceGetAttribute");
	return driver.push && driver.pop && driver.memory && driver.device && driver.attribute;
}

bool device_enter(void *context)
{
	return driver.push(context) == 0;
}

void device_leave(void)
{
	void *context;

	driver.pop(&context);
}

bool device_look(struct device *device)
{
	size_t total = 0, spare;
	int number = 0, major = 0;

	if (driver.memory(&device->free_bytes, &total) || driver.device(&number) ||
	    driver.attribute(&major, COMPUTE_MAJOR, number))
		return false;
	device->buffer_is_fixed = major >= BLACKWELL;
	device->buffer_bytes = device->buffer_is_fixed ? BUFFER_USUAL_BYTES : BUFFER_BYTES;
	spare = total / SPARE_SHARE > SPARE_LEAST ? total / SPARE_SHARE : SPARE_LEAST;
	device->needed_bytes = device->buffer_bytes + spare;
	return true;
}
