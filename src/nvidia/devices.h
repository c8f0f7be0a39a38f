/* SPDX-License-Identifier: MIT */
/*
 * Devices of NVIDIA's driver, by number: /dev/nvidia0.. and nvidiactl have a major number of their
 * own, all others get theirs when their module is loaded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum nvidia_device {
	NVIDIA_NOTHING,
	NVIDIA_GPU,
	NVIDIA_CONTROL,
	NVIDIA_MODESET,
	NVIDIA_UVM,
	NVIDIA_UVM_TOOLS,
	NVIDIA_CAPS,
	NVIDIA_DEVICES
};

/* A range of numbers. */
struct nvidia_numbers {
	uint32_t major, first, last; /* minors */
	enum nvidia_device device;
};

#define NVIDIA_NUMBERS_MAX 8

/* From the lines of /proc/devices; returns how many, with those that need no module. */
size_t nvidia_devices_read(FILE *devices, struct nvidia_numbers numbers[NVIDIA_NUMBERS_MAX]);

/*
 * For tests, which have no driver: "1:3=nvidiactl,1:5=nvidia-uvm" in the environment variable
 * CUSCOPE_NVIDIA_DEVICES takes these devices for NVIDIA's, too.
 */
int nvidia_devices_parse(const char *text, struct nvidia_numbers numbers[NVIDIA_NUMBERS_MAX],
                         size_t *n, struct err *err);

const char *nvidia_device_library(enum nvidia_device device);

/* "nvidiactl", "nvidia0", "nvidia-uvm"; `room` bytes. */
void nvidia_device_name(enum nvidia_device device, uint32_t minor, char *name, size_t room);

/* The major version of the driver that is loaded: 580; 0: none is, or it says none. */
unsigned nvidia_driver_version(void);

/* ---- processors ------------------------------------------------------------------------------ */

/* Names of GPUs by UUID, as /proc/driver/nvidia/gpus has them. */
struct nvidia_gpus;

struct nvidia_gpus *nvidia_gpus_new(void);
void nvidia_gpus_free(struct nvidia_gpus *gpus);

/* "CPU", "GPU0" (by the number of its device), else the first digits of the UUID: "GPU-8c0d2f6e".
 */
void nvidia_gpus_name(struct nvidia_gpus *gpus, const uint8_t uuid[16], char *name, size_t room);

/* ---- engines ------------------------------------------------------------------------------- */

/* Parts of a GPU that work is sent to, by the numbers that channels and groups of them are made
 * with. */

#define NVIDIA_ENGINE_NAME 24

/* "GR0", "COPY2", "NVDEC0"; "engine 77" where the number is not known. */
const char *nvidia_engine_name(uint32_t number, char name[NVIDIA_ENGINE_NAME]);
