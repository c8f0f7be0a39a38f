# SPDX-License-Identifier: MIT
# The archive before the shared library: src/cuda/kernel_name.c says why. It brings cp-demangle.o,
# which needs the C library only.
LIBS := -l:libstdc++.a $(LIBS)
