//! Tunnels in JSON, as nft reads and prints them since 1.1.6.

use crate::json::Value;
use crate::json::node::{Node, Parsed};
use crate::json::object;
use crate::object::{GeneveOption, Tunnel, TunnelEndpoints, TunnelOptions};

pub(super) fn print(of: &Tunnel) -> Value {
    let [(source_name, source), (destination_name, destination)] = match of.endpoints {
        TunnelEndpoints::V4 { source, destination } => {
            [("src-ipv4", source.to_string()), ("dst-ipv4", destination.to_string())]
        }
        TunnelEndpoints::V6 { source, destination, .. } => {
            [("src-ipv6", source.to_string()), ("dst-ipv6", destination.to_string())]
        }
    };
    let (kind, options) = of.options.as_ref().map(print_options).unzip();
    object([
        ("id", Some(of.id.into())),
        (source_name, Some(source.into())),
        (destination_name, Some(destination.into())),
        ("sport", Some(of.sport.into())),
        ("dport", Some(of.dport.into())),
        ("tos", Some(of.tos.into())),
        ("ttl", Some(of.ttl.into())),
        ("type", kind.map(Value::from)),
        ("tunnel", options),
    ])
}

fn print_options(of: &TunnelOptions) -> (&'static str, Value) {
    match of {
        TunnelOptions::Vxlan { gbp } => ("vxlan", object!({"gbp": *gbp})),
        TunnelOptions::Erspan1 { index } => ("erspan", object!({"version": 1, "index": *index})),
        TunnelOptions::Erspan2 { hardware, egress } => {
            let direction = if *egress { "egress" } else { "ingress" };
            ("erspan", object!({"version": 2, "dir": direction, "hwid": *hardware}))
        }
        TunnelOptions::Geneve(options) => {
            let option = |of: &GeneveOption| {
                let data = of.data.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                object!({"class": of.class, "opt-type": of.kind, "data": format!("0x{data}")})
            };
            ("geneve", options.iter().map(option).collect::<Vec<_>>().into())
        }
    }
}

pub(super) fn parse(of: &Node<'_>) -> Parsed<Tunnel> {
    let id = of.need("id", "the number of the tunnel")?.number("a number of 32 bits")?;
    let mut tunnel = match of.has("src-ipv6") || of.has("dst-ipv6") {
        true => Tunnel::v6(id, address(of, "src-ipv6")?, address(of, "dst-ipv6")?),
        false => Tunnel::v4(id, address(of, "src-ipv4")?, address(of, "dst-ipv4")?),
    };
    let port = |name: &str| of.given(name).map_or(Ok(0), |node| node.number("a port"));
    (tunnel.sport, tunnel.dport) = (port("sport")?, port("dport")?);
    tunnel.tos = of.given("tos").map_or(Ok(0), |node| node.number("a number up to 255"))?;
    tunnel.ttl = of.given("ttl").map_or(Ok(tunnel.ttl), |node| node.number("a number up to 255"))?;
    if let Some(kind) = of.given("type") {
        let options = of.need("tunnel", "what the kind of tunnel has for itself")?;
        tunnel.options = Some(match kind.text("a kind of tunnel")? {
            "vxlan" => {
                TunnelOptions::Vxlan { gbp: options.need("gbp", "a number")?.number("a number of 32 bits")? }
            }
            "erspan" => erspan(&options)?,
            "geneve" => TunnelOptions::Geneve(
                options.list("a list of options")?.map(|option| geneve(&option)).collect::<Parsed<_>>()?,
            ),
            _ => return Err(kind.unknown("a kind of tunnel", &["vxlan", "erspan", "geneve"])),
        });
    }
    Ok(tunnel)
}

fn address<A: std::str::FromStr>(of: &Node<'_>, name: &str) -> Parsed<A> {
    let node = of.need(name, "an address")?;
    node.text("an address")?.parse().map_err(|_| node.wrong("an address"))
}

fn erspan(of: &Node<'_>) -> Parsed<TunnelOptions> {
    let version = of.need("version", "1 or 2")?;
    match version.value.as_u64() {
        Some(1) => {
            Ok(TunnelOptions::Erspan1 { index: of.need("index", "a number")?.number("a number of 32 bits")? })
        }
        Some(2) => Ok(TunnelOptions::Erspan2 {
            hardware: of.need("hwid", "a number")?.number("a number up to 255")?,
            egress: of
                .need("dir", "a direction")?
                .word("a direction", &[("ingress", false), ("egress", true)])?,
        }),
        _ => Err(version.wrong("1 or 2")),
    }
}

fn geneve(of: &Node<'_>) -> Parsed<GeneveOption> {
    let node = of.need("data", "bytes, as \"0x12345678\"")?;
    let wrong = || node.wrong("bytes, as \"0x12345678\"");
    let digits = node.text("bytes")?.strip_prefix("0x").ok_or_else(wrong)?;
    let digits: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2)).ok_or_else(wrong)?;
    Ok(GeneveOption {
        class: of.need("class", "a class")?.number("a number of 16 bits")?,
        kind: of.need("opt-type", "a type")?.number("a number up to 255")?,
        data: digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect(),
    })
}
