// SPDX-License-Identifier: MIT
#include "nvidia/devices.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/xalloc.h"

/* ---- engines ------------------------------------------------------------------------------- */

static const struct {
	uint32_t first, last;
	const char *name; /* followed by which of them */
} engines[] = {
	{ 1, 8, "GR" },   { 9, 18, "COPY" }, { 19, 26, "NVDEC" }, { 27, 29, "NVENC" },
	{ 34, 34, "SW" }, { 38, 38, "SEC" }, { 43, 50, "NVJPG" }, { 51, 51, "OFA" },
};

const char *nvidia_engine_name(uint32_t number, char name[NVIDIA_ENGINE_NAME])
{
	snprintf(name, NVIDIA_ENGINE_NAME, "engine %u", number);
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		if (engines[i].first <= number && number <= engines[i].last)
			snprintf(name, NVIDIA_ENGINE_NAME, "%s%u", engines[i].name,
			         number - engines[i].first);
	}
	return name;
}

/* ---- devices ------------------------------------------------------------------------------- */

#define FRONTEND_MAJOR 195
#define MINOR_MODESET  254
#define MINOR_CONTROL  255
#define MINOR_ALL      0xfffff
#define LINES_MAX      1024 /* of /proc/devices */
#define GPUS_MAX       64

static const struct {
	const char *name, *library;
} devices[NVIDIA_DEVICES] = {
	[NVIDIA_GPU] = { "nvidia", "nvidia" },
	[NVIDIA_CONTROL] = { "nvidiactl", "nvidia" },
	[NVIDIA_MODESET] = { "nvidia-modeset", "nvidia-modeset" },
	[NVIDIA_UVM] = { "nvidia-uvm", "nvidia-uvm" },
	[NVIDIA_UVM_TOOLS] = { "nvidia-uvm-tools", "nvidia-uvm" },
	[NVIDIA_CAPS] = { "nvidia-caps", "nvidia" },
};

static void add(struct nvidia_numbers *numbers, size_t *n, uint32_t major, uint32_t first,
                uint32_t last, enum nvidia_device device)
{
	if (*n < NVIDIA_NUMBERS_MAX)
		numbers[(*n)++] = (struct nvidia_numbers){ major, first, last, device };
}

size_t nvidia_devices_read(FILE *file, struct nvidia_numbers numbers[NVIDIA_NUMBERS_MAX])
{
	char line[128], name[64];
	uint32_t major;
	size_t n = 0;

	add(numbers, &n, FRONTEND_MAJOR, 0, MINOR_MODESET - 1, NVIDIA_GPU);
	add(numbers, &n, FRONTEND_MAJOR, MINOR_MODESET, MINOR_MODESET, NVIDIA_MODESET);
	add(numbers, &n, FRONTEND_MAJOR, MINOR_CONTROL, MINOR_CONTROL, NVIDIA_CONTROL);
	for (int i = 0; file && i < LINES_MAX && fgets(line, sizeof(line), file); i++) {
		if (!strncmp(line, "Block", 5))
			break;
		if (sscanf(line, "%u %63s", &major, name) != 2 || major == FRONTEND_MAJOR)
			continue;
		if (!strcmp(name, "nvidia-uvm")) {
			add(numbers, &n, major, 0, 0, NVIDIA_UVM);
			add(numbers, &n, major, 1, 1, NVIDIA_UVM_TOOLS);
		} else if (!strcmp(name, "nvidia-caps")) {
			add(numbers, &n, major, 0, MINOR_ALL, NVIDIA_CAPS);
		}
	}
	return n;
}

/* By what it is called: "nvidia", "nvidiactl", "nvidia-uvm". */
static enum nvidia_device nvidia_device_of_name(const char *name)
{
	for (int i = NVIDIA_NOTHING + 1; i < NVIDIA_DEVICES; i++) {
		if (!strcmp(devices[i].name, name))
			return (enum nvidia_device)i;
	}
	return NVIDIA_NOTHING;
}

int nvidia_devices_parse(const char *text, struct nvidia_numbers numbers[NVIDIA_NUMBERS_MAX],
                         size_t *n, struct err *err)
{
	unsigned major, minor;
	char name[32];
	int used;

	for (*n = 0; *text; text += used) {
		enum nvidia_device device;

		used = 0;
		if (sscanf(text, "%u:%u=%31[a-z-]%n", &major, &minor, name, &used) != 3 || !used)
			return err_set(err, EINVAL,
			               "CUSCOPE_NVIDIA_DEVICES: '%s' is not of the form "
			               "MAJOR:MINOR=NAME",
			               text);
		device = nvidia_device_of_name(name);
		if (device == NVIDIA_NOTHING)
			return err_set(err, EINVAL,
			               "CUSCOPE_NVIDIA_DEVICES: there is no device '%s'", name);
		if (*n == NVIDIA_NUMBERS_MAX)
			return err_set(err, E2BIG, "CUSCOPE_NVIDIA_DEVICES: more than %d devices",
			               NVIDIA_NUMBERS_MAX);
		add(numbers, n, major, minor, minor, device);
		used += text[used] == ',';
	}
	return 0;
}

const char *nvidia_device_library(enum nvidia_device device)
{
	return device > NVIDIA_NOTHING && device < NVIDIA_DEVICES ? devices[device].library
	                                                          : "unknown";
}

void nvidia_device_name(enum nvidia_device device, uint32_t minor, char *name, size_t room)
{
	bool known = device > NVIDIA_NOTHING && device < NVIDIA_DEVICES;

	if (device == NVIDIA_GPU)
		snprintf(name, room, "nvidia%u", minor);
	else if (device == NVIDIA_CAPS)
		snprintf(name, room, "nvidia-caps/nvidia-cap%u", minor);
	else
		snprintf(name, room, "%s", known ? devices[device].name : "unknown");
}

unsigned nvidia_driver_version(void)
{
	char line[64];
	unsigned long version;

	file_line("/sys/module/nvidia/version", line, sizeof(line));
	version = strtoul(line, NULL, 10);
	return version > 9999 ? 0 : (unsigned)version;
}

/* ---- processors ------------------------------------------------------------------------------ */

struct nvidia_gpus {
	size_t n;
	struct {
		uint8_t uuid[16];
		unsigned minor;
	} gpu[GPUS_MAX];
};

/* The driver's own UUID for the CPU. */
static const uint8_t cpu_uuid[16] = { 0xa6, 0x5e, 0x0f, 0x4e, 0xd7, 0xd4, 0x7b, 0xa2,
	                              0x50, 0x47, 0x41, 0x2c, 0x14, 0x2a, 0x77, 0x73 };

/* "8c0d2f6e-0000-4000-8000-000000000000" */
static bool read_uuid(const char *text, uint8_t uuid[16])
{
	for (int i = 0; i < 16; i++) {
		unsigned byte;

		text += *text == '-';
		if (sscanf(text, "%2x", &byte) != 1)
			return false;
		uuid[i] = (uint8_t)byte;
		text += 2;
	}
	return true;
}

static void read_gpu(struct nvidia_gpus *gpus, const char *bus)
{
	char path[384], line[256], text[64];
	uint8_t uuid[16];
	bool has_uuid = false;
	unsigned minor;
	AT_END(at_end_fclose) FILE *file;

	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", bus);
	file = fopen(path, "re");
	for (int i = 0; file && i < 64 && fgets(line, sizeof(line), file); i++) {
		if (sscanf(line, "GPU UUID: GPU-%63s", text) == 1)
			has_uuid = strlen(text) == 36 && read_uuid(text, uuid);
		if (sscanf(line, "Device Minor: %u", &minor) != 1 || !has_uuid)
			continue;
		memcpy(gpus->gpu[gpus->n].uuid, uuid, sizeof(uuid));
		gpus->gpu[gpus->n++].minor = minor;
		break;
	}
}

struct nvidia_gpus *nvidia_gpus_new(void)
{
	struct nvidia_gpus *gpus = xcalloc(1, sizeof(*gpus));
	DIR *folder = opendir("/proc/driver/nvidia/gpus");
	const struct dirent *entry;

	while (folder && gpus->n < GPUS_MAX && (entry = readdir(folder))) {
		if (entry->d_name[0] != '.')
			read_gpu(gpus, entry->d_name);
	}
	if (folder)
		closedir(folder);
	return gpus;
}

void nvidia_gpus_free(struct nvidia_gpus *gpus)
{
	free(gpus);
}

void nvidia_gpus_name(struct nvidia_gpus *gpus, const uint8_t uuid[16], char *name, size_t room)
{
	if (!memcmp(uuid, cpu_uuid, sizeof(cpu_uuid))) {
		snprintf(name, room, "CPU");
		return;
	}
	for (size_t i = 0; i < gpus->n; i++) {
		if (memcmp(uuid, gpus->gpu[i].uuid, 16))
			continue;
		snprintf(name, room, "GPU%u", gpus->gpu[i].minor);
		return;
	}
	snprintf(name, room, "GPU-%02x%02x%02x%02x", uuid[0], uuid[1], uuid[2], uuid[3]);
}
