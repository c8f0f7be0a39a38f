// SPDX-License-Identifier: MIT
#include "node/recorder_wire.h"

#include <errno.h>
#include <sys/socket.h>

#define END(text) ((text)[sizeof(text) - 1] = '\0')

int recorder_send(int socket, const struct recorder_message *message)
{
	if (send(socket, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL) ==
	    sizeof(*message))
		return 0;
	return errno == EAGAIN || errno == ENOBUFS ? -EAGAIN : -EPIPE;
}

/* What is not of this size is of no use, and what sends it neither. */
int recorder_receive(int socket, struct recorder_message *message)
{
	ssize_t n = recv(socket, message, sizeof(*message), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n != sizeof(*message))
		return -EPIPE;
	END(message->text);
	if (message->kind == RECORDER_SETUP) {
		END(message->setup.rules.errors);
		END(message->setup.rules.step_range);
	} else if (message->kind == RECORDER_SAVE)
		END(message->save.reason);
	else if (message->kind == RECORDER_SAVED)
		END(message->saved.name);
	return 0;
}
