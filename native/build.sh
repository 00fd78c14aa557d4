#!/bin/sh
# build.sh OUT_DIR: millrace-spawn, with plain cc. Nothing beyond libc is needed. Warnings stop it only with MILLRACE_WERROR=1, for our tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}"
mkdir -p "$1"
cd "$here"
$CC -std=gnu11 -O2 -g -Wall -Wextra ${MILLRACE_WERROR:+-Werror} -pthread -o "$1/millrace-spawn.new" spawner.c workers.c replies.c start.c log.c usage.c
mv "$1/millrace-spawn.new" "$1/millrace-spawn"
