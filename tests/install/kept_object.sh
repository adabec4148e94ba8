#!/bin/sh
# kept_object.sh COMPILER ARGUMENT...: a compiler launcher for a second build of the same sources in KEPT_INTO, which takes objects from the
# first, KEPT_FROM, instead of compiling them again.  What it has to compile is named in the file KEPT_COMPILED.
previous=
object=
for argument; do
    if [ "$previous" = -o ]; then object=$PWD/$argument; fi
    previous=$argument
done
kept=$KEPT_FROM${object#"$KEPT_INTO"}
case $kept in
*/CMakeScratch/* | */blockscale_kernels.dir/*) ;;                 # questions of CMake; whether this build has CUDA
*.dir/*.o)
    if [ -e "$kept" ]; then exec cp "$kept" "$object"; fi
    echo "$object" >>"$KEPT_COMPILED" ;;
esac
exec "$@"
