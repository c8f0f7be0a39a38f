/* SPDX-License-Identifier: MIT */
/*
 * Where nvidia-uvm.ko keeps what it tells of faults and migrations: from the module's own types
 * (BTF) where it has them, else by the driver's version. Nothing of it is an interface, so it is
 * known for the versions that were looked at, and newer ones are taken to be like the last.
 */
#pragma once

#include <stdbool.h>

#include "bpf/wire_driver.h"

struct btf;

/* Of the first number of a version (nvidia/devices.h); 0: of the newest. False: there is none for a
 * driver that old (before 515). */
bool driver_layout_by_version(unsigned version, struct driver_layout *layout);

/* Puts right what the types of nvidia_uvm say; false where they are not as expected. */
bool driver_layout_by_types(const struct btf *types, struct driver_layout *layout);
