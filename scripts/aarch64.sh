# Sourced: what cargo and what it starts need to compile for aarch64; `skip WHY` is the caller's.
target=aarch64-unknown-linux-gnu

command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc (apt install gcc-aarch64-linux-gnu)"
sysroot=$(rustc --print sysroot)
if [ ! -d "$sysroot/lib/rustlib/$target/lib" ]; then
    command -v rustup >/dev/null || skip "the Rust standard library of $target is missing and there is no rustup to fetch it"
    rustup --quiet target add "$target" || skip "rustup could not fetch the standard library of $target"
fi

export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
# bindgen's clang looks for system headers where the build machine keeps its own.
export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="-I/usr/aarch64-linux-gnu/include"
# pkg-config must not answer for this machine.
export PKG_CONFIG_ALLOW_CROSS=1
