//! Looks for the C libraries. Without them the crate compiles too, and its tests say what is missing.

use std::process::Command;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(libnftnl)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_LIBDIR");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    let has = |library: &str| {
        let found = Command::new("pkg-config").args(["--exists", library]).status();
        found.is_ok_and(|status| status.success())
    };
    let missing: Vec<_> =
        ["libnftnl >= 1.2.4", "libmnl"].into_iter().filter(|library| !has(library)).collect();
    if missing.is_empty() {
        println!("cargo::rustc-cfg=libnftnl");
    } else {
        // As long as there is no such file, cargo looks again with each build.
        println!("cargo::rerun-if-changed=/usr/include/libnftnl/rule.h");
        println!(
            "cargo::warning=our bytes are not compared with libnftnl's: pkg-config does not find {} (Debian: \
             libnftnl-dev libmnl-dev pkg-config)",
            missing.join(" and ")
        );
    }
}
