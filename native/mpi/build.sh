#!/bin/sh
# build.sh OUT_DIR: millrace-mpi.node, with the mpicc of the site (in $CC).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=mpicc}"
mkdir -p "$1"
cd "$here"
$CC -std=gnu11 -O2 -g -Wall -Wextra ${MILLRACE_WERROR:+-Werror} -fPIC -shared -fvisibility=hidden -I../addon -o "$1/millrace-mpi.node.new" mpi.c binding.c calls.c collectives.c files.c requests.c status.c
mv "$1/millrace-mpi.node.new" "$1/millrace-mpi.node"
