// SPDX-License-Identifier: MIT
/* Clocks, energy, fields, Xids and MIG devices; what is 0 by default says so. */
#include <stdio.h>
#include <string.h>

#include "settings.h"

struct field {
	unsigned id, scope;
	long long time_us, latency_us;
	int type, result;
	unsigned long long value;
};

struct event {
	void *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};

struct event_set {
	struct device *device;
};

#define XID   8
#define U64   3
#define LINKS ~0u

int nvmlSystemGetDriverVersion(char *version, unsigned size);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz);
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetPerformanceState(void *device, int *state);
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *generation);
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *lanes);
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count);
int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields);
int nvmlEventSetCreate(void **set);
int nvmlEventSetFree(void *set);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);
int nvmlEventSetWait_v2(void *set, struct event *event, unsigned timeout_ms);
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending);
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **mig);
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id);
int nvmlDeviceGetComputeInstanceId(void *device, unsigned *id);

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
	snprintf(version, size, "580.159.04");
	return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
	*millijoules = (unsigned long long)setting(device, "energy", 123456789);
	return answer(device, "energy");
}

/* 1: of multiprocessors, 2: of memory. */
int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz)
{
	*mhz = (unsigned)(clock == 2 ? setting(device, "memory_clock", 3201)
	                             : setting(device, "sm_clock", 1755));
	return answer(device, "clock");
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
	*reasons = (unsigned long long)setting(device, "throttle", 4);
	return answer(device, "throttle");
}

int nvmlDeviceGetPerformanceState(void *device, int *state)
{
	*state = (int)setting(device, "performance", 0);
	return answer(device, "performance");
}

int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *generation)
{
	*generation = 5;
	return answer(device, "pcie");
}

int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *lanes)
{
	*lanes = 16;
	return answer(device, "pcie");
}

/* Only where fields do not tell it. */
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count)
{
	*count = (unsigned long long)setting(device, "ecc", 1000 + 10 * kind + counter);
	return answer(device, "ecc");
}

static void fill_field(const struct device *device, struct field *field)
{
	char name[32], fail[40];

	snprintf(name, sizeof(name), "field.%u", field->id);
	snprintf(fail, sizeof(fail), "fail.%s", name);
	field->result = (int)setting(device, fail, SUCCESS);
	if ((field->id == 138 || field->id == 139) && field->scope != LINKS)
		field->result = INVALID_ARGUMENT;
	field->type = (int)setting(device, "field.type", U64);
	field->value = (unsigned long long)setting(device, name, field->id);
}

int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields)
{
	int result = answer(device, "fields");

	for (int i = 0; i < count && result == SUCCESS; i++)
		fill_field(device, &fields[i]);
	return result;
}

/* ---- Xids: "xids 2" and "xid 79" are two of them, told once -------------------------------- */

static unsigned told[GPUS_MOST];

int nvmlEventSetCreate(void **set)
{
	static struct event_set sets[GPUS_MOST];
	static unsigned n;

	*set = &sets[n++ % GPUS_MOST];
	return SUCCESS;
}

int nvmlEventSetFree(void *set)
{
	((struct event_set *)set)->device = NULL;
	return SUCCESS;
}

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
	int result = answer(device, "events");

	if (types != XID)
		return INVALID_ARGUMENT;
	((struct event_set *)set)->device = device;
	return result;
}

int nvmlEventSetWait_v2(void *set, struct event *event, unsigned timeout_ms)
{
	const struct device *device = ((struct event_set *)set)->device;

	if (!device || timeout_ms)
		return INVALID_ARGUMENT;
	if (told[device->index] < (unsigned)setting(device, "xids", 0)) {
		told[device->index]++;
		*event = (struct event){ .type = XID,
			                 .data = (unsigned long long)setting(device, "xid", 79) };
		return SUCCESS;
	}
	return setting(device, "lost", 0) != 0 ? GPU_IS_LOST : TIMEOUT;
}

/* ---- MIG: "migs 2" is a GPU of two devices ------------------------------------------------- */

int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending)
{
	*now = *pending = setting(device, "migs", 0) > 0;
	return answer(device, "mig");
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **mig)
{
	static struct device migs[GPUS_MOST][8];
	int gpu = ((struct device *)device)->index;

	if (index >= 8 || index >= (unsigned)setting(device, "migs", 0))
		return NOT_SUPPORTED;
	migs[gpu][index] = (struct device){ gpu, (int)index };
	*mig = &migs[gpu][index];
	return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id)
{
	*id = (unsigned)((struct device *)device)->mig + 1;
	return SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(void *device, unsigned *id)
{
	(void)device;
	*id = 0;
	return SUCCESS;
}
