#!/bin/sh
# build.sh OUT_DIR: millrace-look, with plain cc. Nothing beyond libc is needed. Warnings stop it only with MILLRACE_WERROR=1, for our tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}"
mkdir -p "$1"
cd "$here"
$CC -std=gnu11 -O2 -g -Wall -Wextra ${MILLRACE_WERROR:+-Werror} -o "$1/millrace-look.new" look.c
mv "$1/millrace-look.new" "$1/millrace-look"
