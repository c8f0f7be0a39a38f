# SPDX-License-Identifier: MIT
# libiberty for names of Rust only: function_name.c
LIBS += -liberty
