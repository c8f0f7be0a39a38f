// SPDX-License-Identifier: (GPL-2.0 OR MIT)
/* What RM ioctls answer: handles are given out and checked for their form, and nothing is behind
 * them. */
#include <linux/atomic.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "nvidia.h"

#define CLIENT_FIRST 0xc1d00000u

static atomic_t handles = ATOMIC_INIT(0);

static bool is_client(u32 handle)
{
	return (handle & 0xfff00000) == CLIENT_FIRST;
}

static bool is_class(u32 class)
{
	static const u32 known[] = {
		0x0041, 0x0080, 0x2080, 0x90f1, 0xa06c, 0x9067, 0xc86f,
		0xcbc0, 0xc8b5, 0xc661, 0x0040, 0x003e, 0x0079,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i] == class)
			return true;
	return false;
}

static u32 alloc_object(u32 root, u32 class, u32 *object)
{
	u32 handle = atomic_inc_return(&handles);

	if (!is_class(class))
		return RM_INVALID_CLASS;
	if (class == 0x0041) {
		*object = CLIENT_FIRST + (handle & 0xfffff);
		return RM_OK;
	}
	if (!is_client(root))
		return RM_INVALID_CLIENT;
	if (!*object)
		*object = 0x5c000000 + (handle & 0xffffff);
	return RM_OK;
}

#define CHANNEL 0x21

/* A channel is told its number. */
static u32 alloc_params(const struct rm_alloc *alloc)
{
	u32 number = CHANNEL;
	unsigned long to = alloc->params + offsetof(struct rm_channel, number);

	if (alloc->status || (alloc->class & 0xff) != 0x6f || !alloc->params)
		return alloc->status;
	return copy_to_user((void __user *)to, &number, sizeof(number)) ? RM_NOT_SUPPORTED : RM_OK;
}

static int alloc(void *params, u32 size)
{
	if (size == sizeof(struct rm_alloc)) {
		struct rm_alloc *alloc = params;

		alloc->status = alloc_object(alloc->root, alloc->class, &alloc->object);
		alloc->status = alloc_params(alloc);
	} else if (size == sizeof(struct rm_alloc_short)) {
		struct rm_alloc_short *alloc = params;

		alloc->status = alloc_object(alloc->root, alloc->class, &alloc->object);
	} else {
		return -EINVAL;
	}
	return 0;
}

/* A token is the channel's number with its runlist's. */
static u32 control(struct rm_control *control)
{
	u32 token = 3 << 16 | CHANNEL;

	if (!is_client(control->client))
		return RM_INVALID_CLIENT;
	switch (control->cmd) {
	case 0xc36f0108: /* the token that work is submitted with */
		if (control->params_size != sizeof(token) ||
		    copy_to_user((void __user *)(unsigned long)control->params, &token,
		                 sizeof(token)))
			return RM_NOT_SUPPORTED;
		return RM_OK;
	case 0xa06c0101: /* a group of channels is scheduled */
	case 0xa06c0103: /* its time slice is set */
	case 0x20801210: /* how contexts are preempted */
	case 0x2080200a: /* the clocks are raised */
	case 0x20800301: /* events are asked for */
		return RM_OK;
	}
	return RM_NOT_SUPPORTED;
}

static void version(struct nv_version *version)
{
	version->reply = 1;
	strscpy(version->text, STANDIN_VERSION, sizeof(version->text));
}

/* The size that a number has to come with; 0: any. */
static u32 size_of(u32 nr)
{
	switch (nr) {
	case RM_FREE:
		return sizeof(struct rm_free);
	case RM_CONTROL:
		return sizeof(struct rm_control);
	case RM_MAP_MEMORY:
		return sizeof(struct rm_map);
	case NV_CHECK_VERSION_STR:
		return sizeof(struct nv_version);
	case NV_ALLOC_OS_EVENT:
	case NV_FREE_OS_EVENT:
		return sizeof(struct nv_os_event);
	case NV_REGISTER_FD:
		return sizeof(__s32);
	}
	return 0;
}

int rm_ioctl(struct nvidia_file *file, u32 nr, void *params, u32 size)
{
	if (size_of(nr) && size != size_of(nr))
		return -EINVAL;
	switch (nr) {
	case RM_ALLOC:
		return alloc(params, size);
	case RM_CONTROL: {
		struct rm_control *ask = params;

		ask->status = control(ask);
		return 0;
	}
	case RM_FREE: {
		struct rm_free *ask = params;

		ask->status = is_client(ask->root) ? RM_OK : RM_INVALID_CLIENT;
		return 0;
	}
	case RM_MAP_MEMORY: {
		struct rm_map *ask = params;

		ask->status = ask->memory ? RM_OK : RM_OBJECT_NOT_FOUND;
		return 0;
	}
	case NV_CHECK_VERSION_STR:
		version(params);
		return 0;
	case NV_CARD_INFO:
		if (size >= sizeof(struct nv_card)) {
			memset(params, 0, size);
			((struct nv_card *)params)->valid = 1;
		}
		return 0;
	case NV_ALLOC_OS_EVENT:
	case NV_FREE_OS_EVENT:
		((struct nv_os_event *)params)->status = RM_OK;
		return 0;
	case NV_REGISTER_FD:
		return 0;
	}
	return -EINVAL;
}
