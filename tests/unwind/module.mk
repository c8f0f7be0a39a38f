# SPDX-License-Identifier: MIT
# make test-unwind     the rows that stacks are walked by, against libdw, on files of this system and our own

$(B)/tests/unwind/against_libdw: $(B)/tests/unwind/against_libdw.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ldw $(LIBS)

test-unwind: $(B)/tests/unwind/against_libdw programs
	tests/unwind/run $(B)

.PHONY: test-unwind
