# SPDX-License-Identifier: MIT

.PHONY: help run test test-all fuzz inject migrate report matrix export check format tools deps update clean programs tests
.PHONY: install library abi coverage
.DELETE_ON_ERROR:

help:
	@echo 'make run     build what is missing, measure moving VGIC state, print the table'
	@echo 'make test    unit tests, a model, then kernel and migration tests on 6.12 and 6.1'
	@echo 'make test-all  on every kernel, with the kernel checks and selftests, too: hours'
	@echo 'make fuzz [SECONDS=600]  the reader of snapshots, with libFuzzer'
	@echo 'make inject  measure LPI injection, stock and patched 6.1, 6.12 and 7.x'
	@echo 'make migrate measure live migration of 160 vCPUs, stock and patched'
	@echo 'make report  draw the plots and write the tables of the last make run'
	@echo 'make matrix  what make test-all has found, as the table in README.md'
	@echo 'make export  write the series as mails for git am: build/export/'
	@echo 'make check   shellcheck, clang-format, licence lines'
	@echo 'make format  clang-format, in place'
	@echo 'make tools   the swiftgic command and the tests: build/'
	@echo 'make install [PREFIX=/usr/local] [DESTDIR=...] [ARCH=arm64]'
	@echo '             the library, the command, their manual; needs zlib and cJSON only'
	@echo 'make abi     take the ABI of the library as it is now'
	@echo 'make coverage  which lines of lib/ do the unit tests not reach'
	@echo 'make deps    install the packages that are missing (as root)'
	@echo 'make update  fetch the newest sources with the next run'
	@echo 'make clean   remove build/; the cache of kernels stays'

# To measure, the tests need not be built.
run inject: goal := programs
migrate: goal = programs $(migrate)
run test test-all inject migrate: tools
	@lab/$@.sh

SECONDS := 600
fuzz: tools
	@tests/fuzz/run.sh --seconds $(SECONDS)

report:
	@bench/report.sh

matrix:
	@lab/matrix.sh

export:
	@lab/export.sh $(TREE)

coverage: tools
	@tests/coverage.sh

abi: tools
	@tests/abi.sh --accept

check:
	@lab/check.sh

format:
	@lab/check.sh --format

deps:
	@lab/deps.sh

update:
	@lab/deps.sh --update

clean:
	rm -rf build

# Two runs in one checkout take turns at build/.
goal := programs tests
tools: deps
	@mkdir -p build
	@flock -n build/.lock true || echo 'waiting for another make' >&2
	@flock build/.lock $(MAKE) -sj$(shell nproc) $(goal)

# arm64: what runs in the lab, static. host: this machine, which may be arm64,
# too. Both link what they need out of an archive of lib/ and tools/.
CC := gcc
CROSS := aarch64-linux-gnu-
HOST := $(shell $(CC) -dumpmachine | sed 's/-.*//; s/aarch64/arm64/')
SYSROOT = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/swiftgic/sysroot
WERROR := -Werror
WARN := -std=gnu11 -O2 -g -Wall -Wextra -Wno-missing-field-initializers -Wno-override-init $(WERROR)
INC := -Iinclude -Ilib -Ilib/uapi -Itools -Itests/kvm -Ilab/limit
SAN := -fsanitize=address,undefined -fno-sanitize-recover --coverage

src := $(wildcard lib/*.c tools/*.c)
kvm_tests := $(filter-out %/harness.c,$(wildcard tests/kvm/*.c))
unit_tests := $(wildcard tests/unit/*.c)
migrate := $(addprefix build/arm64/tests/migrate/,guest relay migration)

# These call KVM, as it is on arm64.
arm64_only := tools/vm.c tools/transfer.c tools/state.c tools/its.c \
	tools/injection.c tools/demo.c tools/host.c
common := $(filter-out tools/swiftgic.c,$(src))
arm64_lib := $(common:%.c=build/arm64/%.o)
host_lib := $(patsubst %.c,build/host/%.o,\
	$(filter-out $(if $(filter-out arm64,$(HOST)),$(arm64_only)),$(common)))
unit_lib := $(host_lib:build/host/%=build/unit/%)

# The library
VERSION := $(shell sed -n 's/^#define SGIC_VERSION "\(.*\)"/\1/p' lib/internal.h)
soname := libswiftgic.so.$(firstword $(subst ., ,$(VERSION)))
shared := libswiftgic.so.$(VERSION)

man_pages := build/man/swiftgic-snapshot.5 \
	$(patsubst docs/man/%.scd,build/man/%,$(wildcard docs/man/*.scd))

programs: build/arm64/init build/arm64/swiftgic build/host/swiftgic
tests: $(kvm_tests:%.c=build/arm64/%) $(unit_tests:%.c=build/%) \
	build/tests/fuzz/snapshot $(migrate)
tests: $(foreach b,host arm64,build/$b/libswiftgic.a build/$b/$(shared)) \
	$(man_pages) build/arm64/examples/vmm

quiet = @echo '  $1 $@' && mkdir -p $(@D) &&

build/arm64/%.o: %.c
	$(call quiet,CC) $(CROSS)gcc $(WARN) $(INC) -isystem $(SYSROOT)/include \
		$(PIC) -MMD -MP -c $< -o $@

build/host/%.o: %.c
	$(call quiet,CC) $(CC) $(WARN) $(CPPFLAGS) $(CFLAGS) $(INC) $(PIC) -MMD -MP -c $< -o $@

build/host/lib/%.o build/arm64/lib/%.o: PIC := -fPIC

build/unit/%.o: %.c
	$(call quiet,CC) rm -f $(@:.o=.gcda) && \
		gcc $(WARN) $(INC) $(SAN) -MMD -MP -c $< -o $@

build/arm64/lib.a: $(arm64_lib)
build/host/lib.a: $(host_lib)
build/unit/lib.a: $(unit_lib)
%/lib.a:
	$(call quiet,AR) rm -f $@ && ar rcs $@ $^

%/libswiftgic.a:
	$(call quiet,AR) rm -f $@ && ar rcs $@ $^

so_flags := -shared -Wl,-soname,$(soname),--version-script=lib/swiftgic.map,-z,defs
build/host/$(shared): lib/swiftgic.map
	$(call quiet,LD) $(CC) $(so_flags) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) -lz -o $@
build/arm64/$(shared): lib/swiftgic.map
	$(call quiet,LD) $(CROSS)gcc $(so_flags) $(filter %.o,$^) -L$(SYSROOT)/lib -lz -o $@
$(foreach b,host arm64,$(eval build/$b/libswiftgic.a build/$b/$(shared): \
	$(patsubst %.c,build/$b/%.o,$(wildcard lib/*.c))))

build/arm64/init: build/arm64/lab/init.o
	$(call quiet,LD) $(CROSS)gcc -static $^ -o $@

build/arm64/swiftgic: build/arm64/tools/swiftgic.o build/arm64/lib.a
	$(call quiet,LD) $(CROSS)gcc -static $^ $(SYSROOT)/lib/libcjson.a $(SYSROOT)/lib/libz.a -lm -o $@

build/host/swiftgic: build/host/tools/swiftgic.o build/host/lib.a
	$(call quiet,LD) $(CC) $(CFLAGS) $(LDFLAGS) $^ -lcjson -lz -o $@

# With what a program outside of this tree has, and no more
build/arm64/examples/vmm: examples/vmm.c examples/guest.S examples/guest.h \
		build/arm64/libswiftgic.a
	$(call quiet,LD) $(CROSS)gcc $(WARN) -static -Iinclude $(filter-out %.h,$^) \
		$(SYSROOT)/lib/libz.a -o $@

build/arm64/tests/kvm/%: build/arm64/tests/kvm/%.o \
		build/arm64/tests/kvm/harness.o build/arm64/lib.a
	$(call quiet,LD) $(CROSS)gcc -static -pthread $^ \
		$(SYSROOT)/lib/libcjson.a $(SYSROOT)/lib/libz.a -lm -o $@

build/arm64/tests/migrate/migration: build/arm64/tests/migrate/migration.o \
		build/arm64/tests/kvm/harness.o build/arm64/lib.a
	$(call quiet,LD) $(CROSS)gcc -static -pthread $^ \
		$(SYSROOT)/lib/libcjson.a $(SYSROOT)/lib/libz.a -lm -o $@

build/arm64/tests/migrate/%: build/arm64/tests/migrate/%.o
	$(call quiet,LD) $(CROSS)gcc -static -pthread $^ -o $@

# What a test puts itself in the place of
build/tests/unit/device: WRAP := -Wl,--wrap=ioctl,--wrap=malloc,--wrap=calloc
build/tests/unit/snapshot: WRAP := -Wl,--wrap=malloc,--wrap=calloc
build/tests/unit/%: build/unit/tests/unit/%.o build/unit/lib.a
	$(call quiet,LD) gcc $(SAN) $(WRAP) $^ -lcmocka -lcjson -lz -o $@

# By clang, which has libFuzzer.
FUZZ := -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
build/tests/fuzz/%: tests/fuzz/%.c $(wildcard lib/*.[ch] include/*.h)
	$(call quiet,LD) clang $(WARN) $(INC) $(FUZZ) $(filter %.c,$^) -lz -o $@

# The manual. A page of section 3 has a name for each call that it is about.
build/man/%: docs/man/%.scd
	$(call quiet,MAN) scdoc <$< >$@
build/man/swiftgic-snapshot.5: docs/man/snapshot.awk docs/snapshot.md
	$(call quiet,MAN) awk -f $^ | scdoc >$@

# Installation: what this machine needs, or with ARCH=arm64 what another does.
# Neither needs the lab; the latter needs its cross compiler and its libraries.
PREFIX := /usr/local
BINDIR = $(PREFIX)/bin
INCLUDEDIR = $(PREFIX)/include
LIBDIR = $(PREFIX)/lib
MANDIR = $(PREFIX)/share/man
BASHCOMPDIR = $(PREFIX)/share/bash-completion/completions
ARCH := $(HOST)
from := build/$(if $(filter $(HOST),$(ARCH)),host,arm64)
has_scdoc := $(shell command -v scdoc)

library: $(addprefix $(from)/,libswiftgic.a $(shared) swiftgic) \
	$(if $(has_scdoc),$(man_pages))

install: $(if $(filter-out $(HOST),$(ARCH)),deps)
	@mkdir -p build
	@flock build/.lock $(MAKE) -s library
	install -d $(addprefix $(DESTDIR),$(BINDIR) $(INCLUDEDIR) \
		$(LIBDIR)/pkgconfig $(BASHCOMPDIR))
	install -m 755 $(from)/swiftgic $(DESTDIR)$(BINDIR)
	install -m 644 include/swiftgic.h $(DESTDIR)$(INCLUDEDIR)
	install -m 644 $(from)/libswiftgic.a $(DESTDIR)$(LIBDIR)
	install -m 755 $(from)/$(shared) $(DESTDIR)$(LIBDIR)
	ln -sf $(shared) $(DESTDIR)$(LIBDIR)/$(soname)
	ln -sf $(soname) $(DESTDIR)$(LIBDIR)/libswiftgic.so
	sed $(foreach v,PREFIX LIBDIR INCLUDEDIR VERSION,-e 's,@$v@,$($v),') \
		lib/swiftgic.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/swiftgic.pc
	install -m 644 completions/swiftgic.bash $(DESTDIR)$(BASHCOMPDIR)/swiftgic
	$(if $(has_scdoc),docs/man/install.sh $(DESTDIR)$(MANDIR) $(man_pages),\
		@echo 'no scdoc here: the manual is not installed')

.SECONDARY:
-include $(shell find build -name '*.d' 2>/dev/null)
