# cosched: one Makefile for everything.   `make help` lists the targets.
#
# The contract:
#   - A file is picked up by where it lies; nothing is registered here:
#       lib/{base,model,kube}/*.c       -> libbase.a, libmodel.a, libkube.a
#       PROGRAM/*.c (PROGRAM/main.c)    -> libPROGRAM.a without main, and bin/cosched-PROGRAM
#       kubectl/kubectl-X.c             -> bin/kubectl-X, with the other files there
#       test/local/**.c (main.c)        -> liblocal.a, and bin/cosched-local, the embedded cluster
#       proto/*.proto                   -> build/gen/proto/*.pb-c.[ch], in libdevice-plugin.a
#       test/unit/**/test_X.c           -> one cmocka program each, run by `make unit`
#       test/scenario/**/test_X.c       -> the same
#       test/scenario/X/args            -> a run of cosched-replay (or X/program) and its output, by `make scenario`
#       test/{unit,scenario}/**/*.c     -> libtest.a, helpers for all test programs
#       test/fake/DIR/*.c               -> libtest.a as well: twins of outside things
#       test/{integration,fake}/*.c     -> one program each, run by the integration scripts
#       test/fake/nvml/*.c              -> lib/libnvidia-ml.so.1
#       test/fake/cuda/*.c              -> lib/libcuda.so.1, and test/fake/cuda_worker, a program that uses it
#       device-plugin/isolation/preload -> lib/libcosched-gpu.so, which runs in strangers' processes
#       test/bench/bench_X.c or X.sh    -> `make bench-X`
#       test/bench/DIR/*.c              -> libbench.a, what benchmarks share
#       test/fuzz/fuzz_X.c              -> `make fuzz-X`, seeds in test/fuzz/corpus/X
#     A test program is linked with the archive of each PROGRAM whose name is in its path or whose
#     headers it includes.
#   - The version stands in VERSION; the programs, the chart and the images have it from there.
#   - VARIANT (or V) is the build directory and its flags: release asan tsan cover fuzz.
#     BUILD moves all of them elsewhere. Nothing is written outside BUILD, except what is kept by its
#     content in the cache (COSCHED_CACHE, ~/.cache/cosched): objects, where ccache is installed (CCACHE=
#     turns it off), and verdicts of clang-tidy.
#   - ARCH=arm64 on another machine cross-compiles into build/VARIANT-arm64, with libraries of that architecture in build/sysroot-arm64.
#   - CC is gcc or clang; a change of compiler or flags rebuilds. WERROR=1 or CI=true adds -Werror.
#   - Whatever a target needs from Debian is installed first by test/tools/deps.
#   - Tests run in the root of the tree with BUILD_DIR=build/VARIANT in the environment, and every
#     testing target ends with the line `N passed, N failed`.

V        ?= release
VERSION  := $(shell cat VERSION)
VARIANT  ?= $(V)
BUILD    ?= build
PREFIX   ?= /usr/local
COVER_MIN    ?= 90
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
SHELL := /bin/bash
ifeq (0,$(MAKELEVEL))
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-builtin-rules --no-print-directory
HOST_ARCH := $(subst aarch64,arm64,$(subst x86_64,amd64,$(shell uname -m)))
ARCH ?= $(HOST_ARCH)
B   := $(BUILD)/$(VARIANT)
GEN := $(BUILD)/gen
# For another architecture: a compiler of its own and its libraries in a directory, nothing of this machine's.
ifneq ($(ARCH),$(HOST_ARCH))
ifneq ($(ARCH),arm64)
$(error ARCH is '$(ARCH)'; it can be $(HOST_ARCH), which is this machine, or arm64)
endif
B       := $(BUILD)/$(VARIANT)-$(ARCH)
CROSS   := aarch64-linux-gnu-
SYSROOT := $(abspath $(BUILD)/sysroot-$(ARCH))
override CC := $(CROSS)gcc --sysroot=$(SYSROOT)
PKG_CONFIG := PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/aarch64-linux-gnu/pkgconfig:$(SYSROOT)/usr/share/pkgconfig pkg-config
export CROSS SYSROOT
endif
PKG_CONFIG ?= pkg-config

# ---- flags, by variant --------------------------------------------------------------------------
ifeq (default,$(origin CC))
CC := gcc
endif
SAN_ADDRESS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
HARDENED := -O2 -g -fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
ifneq (,$(filter release lint-%,$(VARIANT)))
MODE := $(HARDENED)
MODE_LINK := -pie -Wl,-z,relro,-z,now
else ifeq (asan,$(VARIANT))
MODE := -O1 -g1 $(SAN_ADDRESS) -DARENA_DEBUG=1
else ifeq (tsan,$(VARIANT))
MODE := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
else ifeq (cover,$(VARIANT))
MODE := -O0 -g --coverage
else ifeq (fuzz,$(VARIANT))
override CC := clang
MODE := -O1 -g $(SAN_ADDRESS) -DARENA_DEBUG=1 -fsanitize=fuzzer-no-link
else
$(error VARIANT is '$(VARIANT)'; it can be release, asan, tsan, cover or fuzz)
endif
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wformat=2 -Wcast-qual
ifneq (,$(filter true 1,$(CI) $(WERROR)))
WARNINGS += -Werror
endif
# Objects that do not know where they were built can be kept for another checkout (gcov must know).
PLACELESS := $(if $(filter cover,$(VARIANT)),,-ffile-prefix-map=$(CURDIR)=.)
COMMON  := -std=c11 -D_GNU_SOURCE -DCOSCHED_VERSION=$(VERSION) -I. -I$(GEN) -pthread $(MODE) $(PLACELESS) $(CFLAGS)
LINKING := -pthread $(MODE) $(MODE_LINK) -Wl,--as-needed $(LDFLAGS)

CACHE  := $(or $(COSCHED_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cosched)
# Asked for when the first recipe needs them, which is after deps has installed the packages.
CCACHE = $(eval CCACHE := $(if $(filter cover,$(VARIANT)),,$(shell mkdir -p $(CCACHE_DIR) 2>/dev/null && command -v ccache)))$(CCACHE)
export CCACHE_DIR ?= $(CACHE)/ccache
export CCACHE_COMPILERCHECK ?= content
pkg = $(eval $1 := $(shell $(PKG_CONFIG) --libs $2))$($1)
LIBS_base = $(call pkg,PKG_BASE,yyjson yaml-0.1 libmicrohttpd gnutls libcurl)
LIBS_webhook = $(call pkg,PKG_WEBHOOK,openssl)
# grpc's .pc file lists a hundred absl libraries that only a static link needs.
LIBS_device-plugin = -lgrpc_unsecure -lgpr $(call pkg,PKG_PLUGIN,libprotobuf-c hwloc) -ldl
LIBS_all = -lcmocka -lm $(LIBS_base) $(LIBS_webhook) $(LIBS_device-plugin)

# ---- what there is ------------------------------------------------------------------------------
LAYERS   := kube model base
PROGRAMS := scheduler webhook device-plugin kubectl
MAINS    := $(wildcard $(PROGRAMS:%=%/main.c) scheduler/replay/main.c kubectl/kubectl-*.c test/local/main.c)
PROTOS   := $(wildcard proto/*.proto)
GEN_SRC  := $(PROTOS:proto/%.proto=$(GEN)/proto/%.pb-c.c)
$(foreach l,$(LAYERS),$(eval SRC_$l := $$(wildcard lib/$l/*.c)))
$(foreach p,$(PROGRAMS),$(eval SRC_$p := $$(filter-out $(MAINS),$$(wildcard $p/*.c $p/*/*.c))))
# The client end of a server stream is shared with the unit tests' twin of the kubelet.
SRC_local := $(filter-out $(MAINS),$(wildcard test/local/*.c test/local/*/*.c)) test/fake/kubelet/stream.c
SRC_test  := $(shell find test/unit test/scenario test/fake/*/ -name '*.c' 2>/dev/null | grep -vE '^test/fake/(nvml/|cuda/(driver|worker))' | sort)
UNIT_SRC  := $(foreach s,$(SRC_test),$(if $(filter test_%,$(notdir $s)),$s))
SRC_test  := $(filter-out $(UNIT_SRC),$(SRC_test))
SRC_bench := $(wildcard test/bench/*/*.c)
BENCH_SRC := $(wildcard test/bench/bench_*.c)
FUZZ_SRC  := $(wildcard test/fuzz/fuzz_*.c)
TOOL_SRC  := $(wildcard test/integration/*.c test/fake/*.c)
NVML_SRC  := $(wildcard test/fake/nvml/*.c) test/fake/cuda/card.c
WORKER_SRC := $(wildcard test/fake/cuda/worker*.c)
CUDA_SRC  := $(wildcard test/fake/cuda/driver*.c) test/fake/cuda/card.c
PRELOAD_SRC := $(wildcard device-plugin/isolation/preload/*.c) \
	$(addprefix device-plugin/isolation/,region.c regionfile.c limits.c budget.c)
SINGLES   := $(UNIT_SRC) $(BENCH_SRC) $(TOOL_SRC) $(FUZZ_SRC)
PRODUCT_SRC := $(foreach n,$(LAYERS) $(PROGRAMS) local,$(SRC_$n)) $(MAINS) $(wildcard device-plugin/isolation/preload/*.c)
C_SRC     := $(PRODUCT_SRC) $(SRC_bench) $(SRC_test) $(SINGLES) $(filter-out $(SRC_test),$(NVML_SRC))
FORMATTED := $(shell find lib $(PROGRAMS) test -name '*.[ch]' 2>/dev/null | sort)
SCRIPTS   := $(shell grep -rlIE '^\#!.*\<(ba|da)?sh\>' .ci test kubectl deploy 2>/dev/null | sort)

obj     = $(patsubst %.c,$(B)/obj/%.o,$(subst $(GEN)/,gen/,$1))
archive = $(foreach n,$1,$(if $(SRC_$n),$(B)/lib$n.a))
bin     = $(B)/bin/$(if $(filter kubectl/%,$1),,cosched-)$(if $(filter %/main.c,$1),$(notdir $(patsubst %/,%,$(dir $1))),$(basename $(notdir $1)))
# The programs whose archives a test source wants: by its path, or by the headers it includes.
wants   = $(foreach p,$(PROGRAMS),$(if $(or $(findstring /$p/,$1),$(filter $1:$p/,$(INCLUDED))),$p)) \
	$(if $(or $(findstring /local/,$1),$(filter $1:test/local/,$(INCLUDED))),local device-plugin) \
	$(if $(or $(findstring /bench/,$1),$(filter $1:test/bench/,$(INCLUDED))),bench scheduler)
INCLUDED := $(if $(SINGLES),$(shell grep -oE '^\#include "(test/)?[a-z-]+/' /dev/null $(SINGLES) | \
	sed 's/:.*"/:/' | sort -u))

BINS   := $(foreach m,$(MAINS),$(call bin,$m))
UNITS  := $(UNIT_SRC:%.c=$(B)/%)
TOOLS  := $(TOOL_SRC:%.c=$(B)/%)
PRELOAD := $(B)/lib/libcosched-gpu.so
FAKES  := $(B)/lib/libnvidia-ml.so.1 $(B)/lib/alone/libnvidia-ml.so.1 $(B)/lib/libcuda.so.1 $(B)/test/fake/cuda_worker $(PRELOAD)
OBJS   := $(call obj,$(C_SRC) $(GEN_SRC))

KEY  := $(shell cksum <test/tools/deps | cut -d' ' -f1)
deps = $(BUILD)/deps/$1-$(KEY) $(if $(CROSS),$(SYSROOT)/complete-$(KEY))
Q    := $(if $(VERBOSE),,@)
say   = @echo "  $1"

# ---- everyday targets ---------------------------------------------------------------------------
.PHONY: all unit test e2e soak bench lint layers format fuzz cover install clean help demo deps
.PHONY: deps-e2e k8s-up k8s-down lint-build lint-tidy lint-format lint-shell objects FORCE

all: $(call archive,$(LAYERS) $(PROGRAMS)) $(BINS) $(FAKES) $(BUILD)/compile_commands.json ## build the programs into build/release/bin (the default)

CHOSEN := $(if $(T),$(sort $(foreach t,$(T),$(foreach u,$(UNITS),$(if $(findstring $t,$u),$u)))),$(UNITS))
unit: $(CHOSEN) $(FAKES) $(BUILD)/compile_commands.json | $(call deps,test) ## unit tests of one variant; T=json runs those whose name has json, CASE=number of these the cases so named
	@$(if $(CHOSEN),,echo "no test program has '$(T)' in its name" >&2; exit 1)
	@BUILD_DIR=$(B) test/tools/run-tests $(if $(CASE),--case '$(CASE)') $(CHOSEN)

test: | $(call deps,test) ## all that needs only Debian packages, asan: unit tests, scenarios, layers, the integration suite on cosched-local, the pages' commands
	@test/tools/steps \
		"unit tests" "$(MAKE) unit VARIANT=asan" \
		"scenarios" "$(MAKE) scenario VARIANT=asan" \
		"layers" "test/tools/layers" \
		"layers fails when it should" "test/tools/test-layers" \
		"the tools count right" "test/tools/test-tools" \
		"run-docs fails when it should" "test/tools/test-run-docs" \
		"pages on the embedded cluster" "$(MAKE) docs-demo" \
		"local cluster" "$(MAKE) local-run VARIANT=asan RUN='test/tools/with-kubectls test/integration/run local --jobs 4'"

.PHONY: check hook bare
check: | $(call deps,lint) ## format, layers, shellcheck, build, unit tests and clang-tidy of the files that changed, in at most 60 s
	@test/tools/check

hook: ## have git run `make check` before each commit
	@hook=$$(git rev-parse --git-path hooks)/pre-commit; \
	if [ -e "$$hook" ] && ! grep -q 'make .*check' "$$hook"; then echo "hook: there is one already: $$hook" >&2; exit 1; fi; \
	printf '#!/bin/sh\nexec make --no-print-directory check\n' >"$$hook"; chmod +x "$$hook"; \
	echo "make check runs before each commit (git commit --no-verify leaves it out); remove it: rm $$hook"

# The README's commands, each time on a machine that has nothing.
bare: ## make demo and make test in a Debian 12 and 13 with nothing installed, as root and as a user with sudo (SUITES=trixie USERS=root)
	@test/tools/steps $(foreach s,$(or $(SUITES),bookworm trixie),$(foreach u,$(or $(USERS),root sudo), \
		"Debian $s as $u" "test/tools/bare --suite $s --as $u $(ARGS)"))

.PHONY: scenario
scenario: $(B)/bin/cosched-replay $(B)/test/bench/bench_simulate ## cosched-replay on the clusters in test/scenario, each with the output that is expected
	@BUILD_DIR=$(B) test/tools/run-tests --timeout 300 test/scenario/run

.PHONY: local-run
local-run: $(BINS) $(FAKES) $(TOOLS)
	@BUILD_DIR=$(B) test/tools/run-tests --timeout 1200 "$(RUN)"

# Two clusters side by side: most of a case is waiting, and it must stay under 12 minutes.
e2e: | $(call deps,e2e) ## the integration suite on a real Kubernetes, asan build, and the pages' commands (ARGS=...: only the suite, with these)
	@test/kubernetes/build.sh helm >/dev/null
	@test/tools/steps \
		"real cluster" "$(MAKE) e2e-suite VARIANT=asan" \
		$(if $(ARGS),,"pages on the real cluster" "$(MAKE) docs-real")

.PHONY: e2e-suite
e2e-suite: $(BINS) $(FAKES) $(TOOLS)
	@BUILD_DIR=$(B) test/tools/with-kubectls --built test/integration/run real $(or $(ARGS),--jobs 2)

soak: | $(call deps,e2e) ## the large counts, for hours if need be; not in CI (ARGS=...)
	@$(MAKE) script-run VARIANT=asan RUN='test/soak/run $(ARGS)'

.PHONY: script-run
script-run: $(BINS) $(FAKES) $(TOOLS)
	@BUILD_DIR=$(B) $(RUN)

k8s-up: | $(call deps,e2e) ## start the real Kubernetes that e2e uses (ARGS=...)
	@test/kubernetes/k8s up $(ARGS)

k8s-down: ## stop it
	@test/kubernetes/k8s down $(ARGS)

demo: $(BINS) | $(call deps,demo) ## the whole product on this machine, without a GPU (KEEP=1 leaves it running)
	@BUILD_DIR=$(B) KEEP=$(KEEP) test/local/demo

.PHONY: docs-demo docs-real
DOCS := README.md $(patsubst %,docs/%.md,howto install replay migrating)
docs-demo: | $(call deps,demo) ## what these pages tell a reader to type, on the embedded cluster
	@test/tools/run-docs --on demo --on none $(DOCS)
docs-real: | $(call deps,demo) $(call deps,e2e) ## the same on a real Kubernetes
	@test/tools/run-docs --on real $(DOCS)

install: $(BINS) $(PRELOAD) ## install the programs below DESTDIR/PREFIX (release)
	@install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/doc/cosched
	install -m 755 $(BINS) $(DESTDIR)$(PREFIX)/bin/
	@install -d $(DESTDIR)$(PREFIX)/lib/cosched
	install -m 755 $(PRELOAD) $(DESTDIR)$(PREFIX)/lib/cosched/
	@install -m 644 LICENSE $(wildcard README.md) $(DESTDIR)$(PREFIX)/share/doc/cosched/

.PHONY: images
images: $(BINS) $(PRELOAD) ## the three container images as OCI archives in build/VARIANT/images, without a Docker daemon; prints their sizes (ARCH=arm64)
	@deploy/images $(B) $(B)/images $(ARCH)

# The cluster and the tests are this machine's, the programs arm64's under qemu-user; not in CI.
.PHONY: test-arm64
test-arm64: | $(call deps,arm64) $(call deps,test) ## walk-throughs on cosched-local with the programs of arm64, cross-compiled, under qemu (ARGS=...)
	@$(MAKE) all
	@$(MAKE) all ARCH=arm64
	@test/tools/run-foreign $(BUILD)/$(VARIANT) $(BUILD)/$(VARIANT)-arm64 $(BUILD)/sysroot-arm64 $(or $(ARGS),--filter 'suite_nodes|suite_hardware')

.PHONY: krew
krew: $(B)/bin/kubectl-inspect-cgpu ## kubectl-inspect-cgpu as an archive and a krew manifest in build/krew, to be downloaded from KREW_URI
	$(if $(KREW_URI),,$(error KREW_URI says where the archive will be downloaded from))
	@deploy/krew $(B) $(BUILD)/krew '$(KREW_URI)' $(ARCH)

.PHONY: manifests
manifests: $(BINS) ## deploy/manifests and the chart's schema, from deploy/chart and the programs' options
	@BUILD_DIR=$(B) deploy/generate

clean: ## remove build/
	rm -rf $(BUILD)

help: ## this list
	@echo "make TARGET [VARIANT=release|asan|tsan|cover|fuzz] [CC=gcc|clang] [VERBOSE=1] [BUILD=dir]"
	@sed -nE 's/^([a-z0-9%-]+):.*## (.*)/  \1\t\2/p' Makefile | expand -t 14

deps: $(call deps,build) $(call deps,test) ## install the packages that build and test need
deps-e2e: $(call deps,e2e)

$(BUILD)/deps/%-$(KEY):
	@DEPS_STAMPS=$(BUILD)/deps test/tools/deps $*
ifdef CROSS
$(SYSROOT)/complete-$(KEY): $(BUILD)/deps/$(ARCH)-$(KEY)
	@DEPS_STAMPS=$(BUILD)/deps test/tools/sysroot $(ARCH) $(SYSROOT) && touch $@
endif

# ---- quality ------------------------------------------------------------------------------------
lint: | $(call deps,lint) $(call deps,fuzz) ## lint-quick and lint-deep
	@test/tools/steps "quick" "$(MAKE) lint-quick" "deep" "$(MAKE) lint-deep"

.PHONY: lint-quick lint-deep
lint-quick: | $(call deps,lint) ## clang-format, shellcheck, layers, docs: seconds
	@test/tools/steps --brief \
		"clang-format" "$(MAKE) lint-format" \
		"comments at 100 columns" "test/tools/columns $(FORMATTED)" \
		"shellcheck" "$(MAKE) lint-shell" \
		"layers" "test/tools/layers" \
		"docs say what is so" "test/tools/check-docs" \
		"check-docs fails when it should" "test/tools/test-docs"

lint-deep: | $(call deps,lint) $(call deps,fuzz) ## gcc and clang with -Werror, chart and manifests, clang-tidy: what passed before is not asked again
	@test/tools/steps --brief \
		"gcc -Werror" "$(MAKE) objects all VARIANT=lint-gcc CC=gcc WERROR=1" \
		"clang -Werror" "$(MAKE) objects all VARIANT=lint-clang CC=clang WERROR=1" \
		"chart and manifests" "BUILD_DIR=$(BUILD)/lint-gcc deploy/generate --check" \
		"clang-tidy" "$(MAKE) -k lint-tidy VARIANT=lint-clang CC=clang WERROR=1"

# ONLY: the sources to which a target is confined (make check).
only = $(if $(ONLY),$(filter $(ONLY),$1),$1)
objects: $(call obj,$(call only,$(C_SRC)) $(GEN_SRC))
lint-tidy: $(patsubst %.c,tidy/%,$(call only,$(PRODUCT_SRC)))
tidy/%: %.c FORCE | $(call deps,lint) $(GEN_SRC)
	$(call say,TIDY $<)
	$(Q)test/tools/tidy $< $(COMMON) $(WARNINGS)
lint-format:
	@$(if $(FORMATTED),clang-format --dry-run -Werror $(FORMATTED))
lint-shell:
	@shellcheck -x $(SCRIPTS)
format: | $(call deps,lint) ## clang-format every C file
	@$(if $(FORMATTED),clang-format -i $(FORMATTED))
layers: ## check the include rules of the architecture
	@test/tools/layers

cover: | $(call deps,cover) ## line coverage of the unit tests; fails when lib/ is below COVER_MIN %
	@find $(BUILD)/cover -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) unit VARIANT=cover
	@test/tools/cover --min $(COVER_MIN) $(BUILD)/cover

fuzz: | $(call deps,fuzz) ## fuzz every test/fuzz/fuzz_X.c for FUZZ_SECONDS; fuzz-X for one
	@$(MAKE) -k VARIANT=fuzz $(patsubst test/fuzz/fuzz_%.c,fuzz-%,$(FUZZ_SRC))
	@echo "$(words $(FUZZ_SRC)) passed, 0 failed"
ifeq (fuzz,$(VARIANT))
fuzz-%: $(B)/test/fuzz/fuzz_%
	@test/tools/run-fuzz $* $< $(FUZZ_SECONDS)
else
fuzz-%: | $(call deps,fuzz)
	@$(MAKE) VARIANT=fuzz $@
endif

bench: $(BENCH_SRC:%.c=$(B)/%) $(BINS) | $(call deps,bench) ## run every benchmark; bench-X for one
	@for b in $(patsubst test/bench/bench_%.c,%,$(BENCH_SRC)) $(patsubst test/bench/%.sh,%,$(wildcard test/bench/*.sh)); do \
		$(MAKE) bench-$$b || exit 1; done
.PHONY: bench-before
bench-before: | $(call deps,bench) ## this tree against commit BEFORE, in turns: benchmarks, memory, and the placements of random clusters
	@test/tools/bench-before $(or $(BEFORE),$(error BEFORE names the commit to compare with)) $(ARGS)
bench-bind bench-gang: | $(call deps,e2e) # on a real API server, with kube-scheduler beside us
bench-plugin: $(B)/test/fake/grpc_empty
bench-isolation: $(FAKES)
bench-%: $(BENCH_SRC:%.c=$(B)/%) $(BINS) | $(call deps,bench)
	@if [ -x $(B)/test/bench/bench_$* ]; then BUILD_DIR=$(B) $(B)/test/bench/bench_$* $(ARGS); \
	elif [ -x test/bench/$*.sh ]; then BUILD_DIR=$(B) test/bench/$*.sh $(ARGS); \
	else echo "bench: neither test/bench/bench_$*.c nor an executable test/bench/$*.sh" >&2; exit 1; fi

# ---- how things are made ------------------------------------------------------------------------
# Rewritten only when its content changes: flags rebuild objects, sources re-make archives.
define remember # file, content
$1: FORCE
	@mkdir -p $$(@D); echo '$2' | cmp -s - $$@ || echo '$2' >$$@
endef
$(eval $(call remember,$(B)/flags,$(CC) $(COMMON) $(WARNINGS) $(LINKING)))
$(eval $(call remember,$(B)/sources,$(C_SRC) $(GEN_SRC)))

# For editors and clangd, which look for it in build/ by themselves.
$(BUILD)/compile_commands.json: $(B)/flags $(B)/sources
	$(file >$@,[)
	$(foreach s,$(C_SRC),$(file >>$@,{"directory": "$(CURDIR)"$(comma) "file": "$s"$(comma) "arguments": [$(call quoted,$(CC) $(COMMON) $(WARNINGS) -c $s)]}$(if $(filter-out $(lastword $(C_SRC)),$s),$(comma))))
	$(file >>$@,])
comma  := ,
quoted = "$(subst $(space),"$(comma) ",$(subst ",\",$(strip $1)))"
space  := $(subst x,,x x)

$(B)/obj/%.o: %.c $(B)/flags | $(call deps,build) $(GEN_SRC)
	$(call say,CC $@)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CC) $(COMMON) $(WARNINGS) -MMD -MP -c $< -o $@
$(B)/obj/gen/%.o: $(GEN)/%.c $(B)/flags
	$(call say,CC $@)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CC) $(COMMON) -w -MMD -MP -c $< -o $@
$(call obj,$(SINGLES) $(SRC_test)): | $(call deps,test)

# protoc-c emits a struct member `register` for the services and knows no `optional` in proto3; its
# initializer macros, used in our code, cast a const away, which -Wcast-qual would refuse.
$(GEN)/proto/%.pb-c.c $(GEN)/proto/%.pb-c.h: proto/%.proto | $(call deps,build)
	$(call say,GEN $(GEN)/proto/$*.pb-c.c)
	@mkdir -p $(@D)
	$(Q)sed -E '/^service .*\{/,/^\}/d; s/\<optional //' $< >$(GEN)/$<
	$(Q)protoc-c --proto_path=$(GEN) --c_out=$(GEN) $(GEN)/$<
	$(Q)sed -i 's/(char \*)protobuf_c_empty/(char *)(uintptr_t)protobuf_c_empty/g' $(GEN)/proto/$*.pb-c.h

SRC_device-plugin := $(if $(SRC_device-plugin),$(SRC_device-plugin) $(GEN_SRC))
define ARCHIVE # name
$(B)/lib$1.a: $(call obj,$(SRC_$1)) $(B)/sources
	$$(call say,AR $$@)
	@rm -f $$@
	$$(Q)$(CROSS)ar rcs $$@ $$(filter %.o,$$^)
endef
$(foreach n,$(LAYERS) $(PROGRAMS) local bench test,$(eval $(call ARCHIVE,$n)))

# The embedded cluster speaks the device plugin's wire format and serves TLS.
parts = $(if $(filter test/local/%,$1),local device-plugin,$(firstword $(subst /, ,$1)))
LIBS_local = $(LIBS_webhook)
define MAIN # main source
$(call bin,$1): $(call obj,$1) $(call archive,$(call parts,$1) $(LAYERS))
	$$(call say,LD $$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $(LINKING) -o $$@ $$^ $$(foreach p,$(call parts,$1),$$(LIBS_$$p)) $$(LIBS_base)
endef
$(foreach m,$(MAINS),$(eval $(call MAIN,$m)))

define SINGLE # source of a one-file program
$(B)/$(1:.c=): $(call obj,$1) $(call archive,test $(call wants,$1) $(LAYERS))
	$$(call say,LD $$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $(LINKING) $(if $(filter test/fuzz/%,$1),-fsanitize=fuzzer) $(if $(filter $(UNIT_SRC),$1),-Wl$$(comma)-u$$(comma)case_choose) -o $$@ \
		$$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $$(LIBS_all)
endef
$(foreach s,$(SINGLES),$(eval $(call SINGLE,$s)))

$(B)/lib/libnvidia-ml.so.1: $(NVML_SRC) $(wildcard test/fake/nvml/*.h) test/fake/cuda/card.h $(B)/flags | $(call deps,build)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(COMMON) $(WARNINGS) -fPIC -shared -Wl,-soname,$(@F) -o $@ $(NVML_SRC) -pthread

# What runs in programs that know nothing of sanitizers: the library with its checks as traps, without a runtime; its fake driver
# and its worker without any.
ALONE := -std=c11 -D_GNU_SOURCE -I. -O2 -g -fPIC -pthread -fstack-protector-strong
$(PRELOAD): $(PRELOAD_SRC) $(wildcard device-plugin/isolation/*.h device-plugin/isolation/preload/*.h) $(B)/flags | $(call deps,build)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALONE) $(WARNINGS) $(if $(filter asan,$(VARIANT)),-fsanitize=undefined -fsanitize-undefined-trap-on-error) \
		-fvisibility=hidden -shared -Wl,-soname,$(@F),-z,now,-z,relro,-z,defs,-z,nodelete -o $@ $(PRELOAD_SRC)
$(B)/lib/libcuda.so.1: $(CUDA_SRC) $(wildcard test/fake/cuda/*.h) $(B)/flags | $(call deps,build)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALONE) $(WARNINGS) -fvisibility=hidden -shared -Wl,-soname,$(@F) -o $@ $(CUDA_SRC)
$(B)/lib/alone/libnvidia-ml.so.1: $(NVML_SRC) $(wildcard test/fake/nvml/*.h) test/fake/cuda/card.h $(B)/flags | $(call deps,build)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALONE) $(WARNINGS) -shared -Wl,-soname,$(@F) -o $@ $(NVML_SRC)
$(B)/test/fake/cuda_worker: $(WORKER_SRC) test/fake/cuda/worker.h $(B)/lib/libcuda.so.1
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALONE) $(WARNINGS) -o $@ $(WORKER_SRC) $(B)/lib/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../../lib' -ldl

-include $(OBJS:.o=.d)
