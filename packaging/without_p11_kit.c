// SPDX-License-Identifier: MIT
/*
 * In place of libp11-kit, which Debian has as a shared library only, while GnuTLS refers to it. It
 * loads drivers of smart cards and the like, which a static program cannot do anyway. Keys and
 * certificates of `cuscope agent` are files, and their content is given to GnuTLS, so none of these
 * is called on the way. Who calls one all the same is told that there are no such drivers.
 */
#include <stddef.h>

#define NONE(name)                                                                                 \
	void *p11_kit_##name(void);                                                                \
	void *p11_kit_##name(void)                                                                 \
	{                                                                                          \
		return NULL;                                                                       \
	}
#define ZERO(name)                                                                                 \
	long p11_kit_##name(void);                                                                 \
	long p11_kit_##name(void)                                                                  \
	{                                                                                          \
		return 0;                                                                          \
	}
#define FAILS(name)                                                                                \
	long p11_kit_##name(void);                                                                 \
	long p11_kit_##name(void)                                                                  \
	{                                                                                          \
		return -1;                                                                         \
	}

NONE(config_option)
NONE(message)
NONE(module_get_name)
NONE(module_load)
NONE(modules_load)
NONE(pin_file_callback)
NONE(pin_get_value)
NONE(pin_new_for_string)
NONE(pin_request)
NONE(space_strdup)
NONE(strerror)
NONE(uri_get_attribute)
NONE(uri_get_attributes)
NONE(uri_get_module_info)
NONE(uri_get_pin_source)
NONE(uri_get_pin_value)
NONE(uri_get_token_info)
NONE(uri_new)
ZERO(module_get_flags)
ZERO(pin_get_length)
ZERO(pin_register_callback)
ZERO(space_strlen)
ZERO(uri_match_module_info)
ZERO(uri_match_token_info)
ZERO(module_release)
ZERO(pin_unref)
ZERO(pin_unregister_callback)
ZERO(uri_free)
FAILS(module_finalize)
FAILS(uri_format)
FAILS(uri_parse)
FAILS(uri_set_attribute)
