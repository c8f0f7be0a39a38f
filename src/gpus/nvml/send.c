// SPDX-License-Identifier: MIT
#include "gpus/nvml/send.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

void send_message(struct nvml_message *message)
{
	ssize_t n;

	message->head.magic = NVML_WIRE_MAGIC;
	do
		n = send(NVML_WIRE_SOCKET, message, nvml_message_bytes(message->head.kind),
		         MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		_exit(1);
}
