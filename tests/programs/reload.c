// SPDX-License-Identifier: MIT
/*
 * reload [ROUNDS]: loads a module, launches its kernel and unloads it, again and again with another
 * kernel, whose handle comes to lie where the last one was. Names that were remembered by handle
 * would be wrong. The same with a library.
 */
#include "sample.h"

#define NAMES 3

static const char *const mangled[NAMES] = { "_Z3onev", "_Z3twov", "_Z5threev" };
static const char *const shown[NAMES] = { "one()", "two()", "three()" };

static const char *ptx_with(const char *kernel)
{
	static char text[256];

	snprintf(text, sizeof(text),
	         ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry %s() { ret; }\n",
	         kernel);
	return text;
}

static void by_module(int n, struct shape shape)
{
	CUfunction function;
	CUmodule module;

	DRIVER(cuModuleLoadData, &module, ptx_with(mangled[n]));
	DRIVER(cuModuleGetFunction, &function, module, mangled[n]);
	sample_launch(function, shown[n], shape, NULL);
	sample_launch(function, shown[n], shape, NULL);
	DRIVER(cuModuleUnload, module);
}

static void by_library(int n, struct shape shape)
{
	CUlibrary library;
	CUkernel kernel;

	DRIVER(cuLibraryLoadData, &library, ptx_with(mangled[n]), NULL, NULL, 0, NULL, NULL, 0);
	DRIVER(cuLibraryGetKernel, &kernel, library, mangled[n]);
	sample_launch((CUfunction)kernel, shown[n], shape, NULL);
	sample_launch((CUfunction)kernel, shown[n], shape, NULL);
	DRIVER(cuLibraryUnload, library);
}

int main(int argc, char **argv)
{
	long rounds = sample_number(argc, argv, 1, 30);
	struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };

	sample_context();
	for (long i = 0; i < rounds; i++)
		by_module((int)(i % NAMES), shape);
	for (long i = 0; i < rounds; i++)
		by_library((int)(i % NAMES), shape);
	return sample_end();
}
