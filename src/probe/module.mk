# SPDX-License-Identifier: MIT
# libiberty for names of Rust only: plain_name.c
LIBS += -liberty
