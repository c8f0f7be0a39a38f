/* SPDX-License-Identifier: MIT */
/* Parts of a GPU that work is sent to, by the numbers that channels and groups of them are made
 * with. */
#ifndef CUSCOPE_NVIDIA_ENGINES_H
#define CUSCOPE_NVIDIA_ENGINES_H

#include <stdint.h>

#define NVIDIA_ENGINE_NAME 24

/* "GR0", "COPY2", "NVDEC0"; "engine 77" where the number is not known. */
const char *nvidia_engine_name(uint32_t number, char name[NVIDIA_ENGINE_NAME]);

#endif
