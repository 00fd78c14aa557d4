#!/bin/sh
# build.sh OUT_DIR: libmillrace.so and millrace-board, with plain cc. Nothing beyond libc is needed.
# build.sh --trap OUT_DIR: the library only; undefined behaviour ends the program with SIGILL, without a runtime library.
# build.sh --logic OUT_FILE: the logic without the interposing entry, as one archive for the tests.
# build.sh --sanitize OUT_FILE: the same with the address and undefined-behaviour sanitizers.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}"
# A warning of a compiler that we have not met must not stop a user's build: only our tests set MILLRACE_WERROR.
warn="-std=gnu11 -O2 -g -Wall -Wextra ${MILLRACE_WERROR:+-Werror} -fPIC -fvisibility=hidden"
board="board lock rules files stream procs holds recover wait deadlock stage spill twins unseen changes"
calls="paths reach gate fds io_open io_data io_stage io_ahead io_map io_pass io_path io_rename io_size io_proc io_exec lower veil outer adopt dispatch sites"

# The library runs in the middle of libc's functions: no vector registers, no calls to libc, no canary.
bare="-ffreestanding -fno-stack-protector"
# gcc makes calls of memset out of loops; clang does not in freestanding code, and refuses the flag.
patterns=-fno-tree-loop-distribute-patterns
if $CC -Werror $patterns -fsyntax-only -x c /dev/null 2> /dev/null; then bare="$bare $patterns"; fi
case $($CC -dumpmachine) in x86_64*) bare="$bare -mgeneral-regs-only" ;; esac

work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-build.XXXXXX")
trap 'rm -rf "$work"' EXIT

compile() { # FLAGS FILES: objects into $work
    flags=$1; shift
    for f; do $CC $warn $flags -c "$here/$f.c" -o "$work/$f.o"; done
}

undefined=
if [ "${1:-}" = --trap ]; then
    undefined="-O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error"
    shift
fi

case ${1:-} in
--logic|--sanitize)
    flags=
    [ "$1" = --sanitize ] && flags="-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined"
    compile "$flags" $board $calls
    $CC -DMR_NO_STUB -c "$here/stub.S" -o "$work/stub.o"
    rm -f "$2"
    (cd "$work" && ar rcs out.a ./*.o)
    mv "$work/out.a" "$2"
    exit ;;
''|-*) echo "usage: build.sh [--trap] OUT_DIR | --logic OUT_FILE | --sanitize OUT_FILE" >&2; exit 2 ;;
esac

out=$1
mkdir -p "$out"
compile "$bare $undefined" $board $calls memory patch entry
$CC -c "$here/stub.S" -o "$work/stub.o"
$CC -shared -Wl,-z,now -Wl,-z,noexecstack -Wl,-soname,libmillrace.so -o "$work/libmillrace.so" "$work"/*.o
mv "$work/libmillrace.so" "$out/libmillrace.so"
[ -z "$undefined" ] || exit 0
rm -f "$work"/*.o
compile "-pthread" $board plan tool tool_links tool_exec tool_ps tool_serve tool_relay tool_send tool_receive
$CC -pthread -o "$work/millrace-board" "$work"/*.o
mv "$work/millrace-board" "$out/millrace-board"
