/* SPDX-License-Identifier: MIT */
/* Messages to cuscope. */
#ifndef CUSCOPE_GPUS_NVML_SEND_H
#define CUSCOPE_GPUS_NVML_SEND_H

#include "gpus/nvml_wire.h"

/* Sets the magic number, and waits where cuscope is slow. Ends the process where cuscope is gone.
 * Any thread may. */
void send_message(struct nvml_message *message);

#endif
