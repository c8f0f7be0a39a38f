// SPDX-License-Identifier: MIT
#include "agent/lib/stalls_device.h"

#include "agent/lib/glibc.h"

#include <dlfcn.h>
#include <time.h>

#include "agent/lib/clock.h"

#define COMPUTE_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define BLACKWELL     10
#define UNTIMED       2 /* CU_EVENT_DISABLE_TIMING */
#define PAUSE_NS      100000

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
	int (*create)(void **event, unsigned flags);
	int (*destroy)(void *event);
	int (*record)(void *context, void *event); /* CUDA 12.5: of all streams */
	int (*query)(void *event);
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
	driver.create = (int (*)(void **, unsigned))dlsym(library, "cuEventCreate");
	driver.destroy = (int (*)(void *))dlsym(library, "cuEventDestroy_v2");
	driver.record = (int (*)(void *, void *))dlsym(library, "cuCtxRecordEvent");
	driver.query = (int (*)(void *))dlsym(library, "cuEventQuery");
	return driver.push && driver.pop && driver.memory && driver.device && driver.attribute &&
	       driver.create && driver.destroy && driver.record && driver.query;
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

bool device_is_idle(void *context, void **event, uint64_t until_ns)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	if (!*event && driver.create(event, UNTIMED)) {
		*event = NULL;
		return false;
	}
	if (driver.record(context, *event))
		return false;
	while (driver.query(*event)) {
		if (clock_now() > until_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

void device_forget(void **event)
{
	if (*event)
		driver.destroy(*event);
	*event = NULL;
}
