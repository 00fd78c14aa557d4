#!/bin/sh
# build.sh OUT_DIR: millrace-hdf5.node, with the mpicc of the site (in $CC) and the HDF5 that was built for its MPI.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=mpicc}"
mkdir -p "$1"
cd "$1"
set -- "$PWD"
cd "$here"
kind=mpich
if $CC --showme:version >/dev/null 2>&1; then kind=openmpi; fi
flags=
for name in "hdf5-$kind" hdf5-mpi hdf5; do
    if [ -z "$flags" ]; then flags=$(pkg-config --cflags --libs "$name" 2>/dev/null || true); fi
done
out=$1/millrace-hdf5.node.new
# h5pcc compiles and links in two steps, and leaves the object file where it is started: in a folder of its own, beside the result.
build() {
    objects=$(mktemp -d "$out.XXXXXX")
    trap 'rm -rf "$objects"' EXIT
    cd "$objects"
    "$@" -std=gnu11 -O2 -g -Wall -Wextra ${MILLRACE_WERROR:+-Werror} -fPIC -shared -fvisibility=hidden -I"$here/../addon" -o "$out" "$here/hdf5.c"
}
# shellcheck disable=SC2086 # The flags are words.
if [ -n "$flags" ]; then
    $CC -std=gnu11 -O2 -g -Wall -Wextra ${MILLRACE_WERROR:+-Werror} -fPIC -shared -fvisibility=hidden -I../addon -o "$out" hdf5.c $flags
elif command -v "h5pcc.$kind" >/dev/null; then build "h5pcc.$kind" -shlib
elif command -v h5pcc >/dev/null; then build h5pcc -shlib
else
    echo "no parallel HDF5 for $kind" >&2
    exit 3
fi
mv "$out" "$1/millrace-hdf5.node"
