#!/bin/sh
# build.sh OUT_DIR: millrace.node, with plain cc. Libraries of linear algebra are looked for when it is used, not here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}"
mkdir -p "$1"
cd "$here"
$CC -std=gnu11 -O2 -g -Wall -Wextra ${MILLRACE_WERROR:+-Werror} -fPIC -shared -fvisibility=hidden -o "$1/millrace.node.new" addon.c affinity.c attributes.c blas-core.c lapack.c -ldl -lpthread
mv "$1/millrace.node.new" "$1/millrace.node"
