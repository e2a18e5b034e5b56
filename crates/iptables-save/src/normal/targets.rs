//! The saved form of a target beyond the order and spelling of its options.

use super::options::Options;
use crate::ext::Family;
use crate::value::{Network, mark, seconds};

pub(super) fn fix(name: &str, options: &mut Options, family: Family) {
    match name {
        "CLUSTERIP" => clusterip(options),
        "CONNMARK" => connmark(options),
        "CT" => {
            options.drop_default("zone", "0");
            options.drop_default("zone-orig", "0");
            options.drop_default("zone-reply", "0");
        }
        "DSCP" => {
            if let Some(value) = options.value("set-dscp-class").map(str::to_owned) {
                options.replace("set-dscp-class", "set-dscp", [value]);
            }
        }
        "HMARK" => hmark(options, family),
        "LED" => options.drop_default("led-delay", "0"),
        "LOG" => options.drop_default("log-level", "4"),
        "MARK" => set_mark(options),
        "NETMAP" => {
            if let Some(to) = options.value("to").and_then(|to| Network::normal_of(to, family)) {
                options.set("to", to);
            }
        }
        "NFLOG" => {
            options.drop_default("nflog-group", "0");
            // The legacy back end saves it, though it never had an effect. The nft back end does not.
            options.drop_default("nflog-range", "0");
            options.drop_default("nflog-threshold", "0");
        }
        "NFQUEUE" if !options.has("queue-balance") => options.default("queue-num", "0"),
        "RATEEST" => rateest(options),
        "REJECT" => {
            let kind =
                if family == Family::Ipv4 { "icmp-port-unreachable" } else { "icmp6-port-unreachable" };
            options.default("reject-with", kind);
        }
        "TOS" => tos(options),
        "TPROXY" => tproxy(options, family),
        "ULOG" => {
            options.drop_default("ulog-nlgroup", "1");
            options.drop_default("ulog-cprange", "0");
            options.drop_default("ulog-qthreshold", "1");
        }
        _ => (),
    }
}

/// The ways to set a mark are all saved as `--set-xmark value/mask`: clear the mask's bits, then XOR the
/// value.
fn set_mark(options: &mut Options) {
    for name in ["set-xmark", "set-mark", "and-mark", "or-mark", "xor-mark"] {
        let Some((value, mask)) = options.value(name).and_then(|value| mark(value).ok()) else { continue };
        let (value, mask) = match name {
            "set-mark" => (value, value | mask),
            "and-mark" => (0, !value),
            "or-mark" => (value, value),
            "xor-mark" => (value, 0),
            _ => (value, mask),
        };
        options.replace(name, "set-xmark", [format!("{value:#x}/{mask:#x}")]);
        return;
    }
}

/// Without `--new` the node is one that another rule has set up.
fn clusterip(options: &mut Options) {
    if options.has("new") {
        options.default("hash-init", "0");
    }
    if let Some(address) = options.value("clustermac").map(str::to_ascii_uppercase) {
        options.set("clustermac", address);
    }
}

fn connmark(options: &mut Options) {
    set_mark(options);
    options.drop_default("left-shift-mark", "0");
    options.drop_default("right-shift-mark", "0");
    if !options.has("save-mark") && !options.has("restore-mark") {
        return;
    }
    let both = options.number("mask");
    for name in ["nfmask", "ctmask"] {
        let mask = options.number(name).or(both).unwrap_or(u32::MAX.into());
        options.set(name, format!("{mask:#x}"));
    }
    options.drop("mask");
}

/// The names of a tuple stand for full masks.
fn hmark(options: &mut Options, family: Family) {
    let tuple = options.value("hmark-tuple").unwrap_or_default().to_owned();
    options.drop("hmark-tuple");
    let full = if family == Family::Ipv4 { "32" } else { "128" };
    for part in tuple.split(',') {
        match part {
            "src" => options.default("hmark-src-prefix", full),
            "dst" => options.default("hmark-dst-prefix", full),
            "sport" => options.default("hmark-sport-mask", "0xffff"),
            "dport" => options.default("hmark-dport-mask", "0xffff"),
            "spi" => options.default("hmark-spi-mask", "0xffffffff"),
            "proto" => options.default("hmark-proto-mask", "0xff"),
            "ct" => options.default("hmark-tuple", "ct"),
            _ => (),
        }
    }
}

fn rateest(options: &mut Options) {
    for name in ["rateest-interval", "rateest-ewmalog"] {
        if let Some(seconds) = options.value(name).and_then(seconds) {
            options.set(name, format!("{}ms", seconds * 1000.0));
        }
    }
}

/// As marks, with eight bits.
fn tos(options: &mut Options) {
    for name in ["and-tos", "or-tos", "xor-tos"] {
        let Some(bits) = options.number(name).and_then(|bits| u8::try_from(bits).ok()) else { continue };
        let (value, mask) = match name {
            "and-tos" => (0, !bits),
            "or-tos" => (bits, bits),
            _ => (bits, 0),
        };
        options.replace(name, "set-tos", [format!("{value:#04x}/{mask:#04x}")]);
        return;
    }
}

fn tproxy(options: &mut Options, family: Family) {
    options.default("on-ip", if family == Family::Ipv4 { "0.0.0.0" } else { "::" });
    let (value, mask) = options.value("tproxy-mark").and_then(|value| mark(value).ok()).unwrap_or((0, 0));
    options.set("tproxy-mark", format!("{value:#x}/{mask:#x}"));
}
