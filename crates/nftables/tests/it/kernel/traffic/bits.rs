//! Fields narrower than their bytes: frames with each of their values decide what a rule matches.
//!
//! The frames come through a device, so that they may have any header; their source says which value they
//! have of which field, and each rule under test notes the sources that it matches.

use std::collections::BTreeSet;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, sendto, socket};
use std::os::fd::AsRawFd;

use super::*;

/// Says whether a rule matches a value.
type Matches = Box<dyn Fn(u64) -> bool>;

/// A field with its width in bits, and a frame, of which the source is left out, with a value of it.
struct Field {
    name: &'static str,
    bits: u32,
    frame: fn(u64) -> Vec<u8>,
}

const FIELDS: [Field; 14] = [
    Field { name: "ip version", bits: 4, frame: |v| ip_frame([v << 4 | 5, 0], 0, &tcp(5, 0)) },
    Field { name: "ip hdrlength", bits: 4, frame: |v| ip_frame([4 << 4 | v, 0], 0, &tcp(5, 0)) },
    Field { name: "ip dscp", bits: 6, frame: |v| ip_frame([0x45, v << 2 | 1], 0, &tcp(5, 0)) },
    Field { name: "ip ecn", bits: 2, frame: |v| ip_frame([0x45, 0x54 | v], 0, &tcp(5, 0)) },
    Field { name: "ip6 dscp", bits: 6, frame: |v| ip6_frame(v << 22 | 0xf_4321, 6, &tcp(5, 0)) },
    Field { name: "ip6 ecn", bits: 2, frame: |v| ip6_frame(v << 20 | 0xf_4321, 6, &tcp(5, 0)) },
    Field { name: "ip6 flowlabel", bits: 20, frame: |v| ip6_frame(0xff << 20 | v, 6, &tcp(5, 0)) },
    Field {
        name: "frag frag-off",
        bits: 13,
        frame: |v| ip6_frame(0, 44, &[fragment(v << 3 | 5), tcp(5, 0)].concat()),
    },
    Field {
        name: "frag reserved2",
        bits: 2,
        frame: |v| ip6_frame(0, 44, &[fragment(v << 1 | 1), tcp(5, 0)].concat()),
    },
    Field { name: "tcp doff", bits: 4, frame: |v| ip_frame([0x45, 0], 0, &tcp(v, 2)) },
    Field { name: "tcp reserved", bits: 4, frame: |v| ip_frame([0x45, 0], 0, &tcp(5 | v << 8, 2)) },
    Field { name: "vlan pcp", bits: 3, frame: |v| vlan_frame(v << 13 | 0x1234) },
    Field { name: "vlan dei", bits: 1, frame: |v| vlan_frame(v << 12 | 0xa234) },
    Field { name: "vlan id", bits: 12, frame: |v| vlan_frame(v | 0xb000) },
];

impl Field {
    /// All values, or of a wide field those that differ in their high bits, with others in their low ones.
    fn values(&self) -> Vec<u64> {
        match self.bits {
            ..=6 => (0..1 << self.bits).collect(),
            wide => (0_u64..64)
                .map(|i| i << (wide - 6) | i.reverse_bits() >> 58 & ((1 << (wide - 6)) - 1))
                .collect(),
        }
    }

    /// Rules about the field, each with what it says of a value.
    fn rules(&self) -> Vec<(String, Matches)> {
        let (f, w) = (self.name, self.bits);
        let max = (1_u64 << w) - 1;
        // In the middle, and with ones and noughts in every nibble.
        let (n, low, high, mask) = (max * 5 / 11, max / 4, max - max / 4, (max * 9 / 14) | 1);
        let mut rules: Vec<(String, Matches)> = vec![
            (format!("{f} {n}"), Box::new(move |v| v == n)),
            (format!("{f} != {n}"), Box::new(move |v| v != n)),
            (format!("{f} {low}-{high}"), Box::new(move |v| (low..=high).contains(&v))),
            (format!("{f} != {low}-{high}"), Box::new(move |v| !(low..=high).contains(&v))),
            (format!("{f} < {high}"), Box::new(move |v| v < high)),
            (format!("{f} >= {high}"), Box::new(move |v| v >= high)),
            (format!("{f} & {mask} == {}", n & mask), Box::new(move |v| v & mask == n & mask)),
            (format!("{f} & {mask} != {}", n & mask), Box::new(move |v| v & mask != n & mask)),
            (format!("{f} | {mask} == {}", n | mask), Box::new(move |v| v | mask == n | mask)),
            (format!("{f} ^ {mask} == {n}"), Box::new(move |v| v ^ mask == n)),
            (format!("{f} ^ {mask} < {high}"), Box::new(move |v| v ^ mask < high)),
        ];
        if w < 2 {
            return rules;
        }
        rules.push((format!("{f} {{ {low}, {high}-{max} }}"), Box::new(move |v| v == low || v >= high)));
        rules.push((format!("{f} != {{ {low}, {high}-{max} }}"), Box::new(move |v| v != low && v < high)));
        rules.push((
            format!("{f} vmap {{ 0 : continue, {high}-{max} : continue }}"),
            Box::new(move |v| v == 0 || v >= high),
        ));
        for by in BTreeSet::from([1, w / 2, w - 1]) {
            let length = w - by;
            let prefix = high >> by << by;
            rules.push((format!("{f} {prefix}/{length}"), Box::new(move |v| v >> by == high >> by)));
            rules.push((format!("{f} != {prefix}/{length}"), Box::new(move |v| v >> by != high >> by)));
            rules.push((
                format!("{f} {{ 0, {prefix}/{length} }}"),
                Box::new(move |v| v == 0 || v >> by == high >> by),
            ));
            rules.push((format!("{f} >> {by} == {}", high >> by), Box::new(move |v| v >> by == high >> by)));
        }
        rules
    }
}

#[test]
fn frames_with_each_value_of_a_field_decide_what_rules_match() {
    if !testns::have(&["ip"]) {
        return;
    }
    let Some(namespace) = Netns::new() else { return };
    shell(
        &namespace,
        "ip link add v0 type veth peer name v1
         echo 1 >/proc/sys/net/ipv6/conf/v0/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/v1/disable_ipv6
         ip link set v0 up; ip link set v1 up",
    );
    // Each rule has a set for the sources of the frames that it matched.
    let (mut script, mut rules) = (String::from("table netdev t {\n"), Vec::new());
    let set = |name: &str| format!("\tset {name} {{ type ether_addr; size 65535; flags dynamic; }}\n");
    let mut chains = String::new();
    for (i, field) in FIELDS.iter().enumerate() {
        chains += &format!("\tchain f{i} {{\n");
        for (rule, matches) in field.rules() {
            let name = format!("m{}", rules.len());
            script += &set(&name);
            chains += &format!("\t\t{rule} update @{name} {{ ether saddr }}\n");
            rules.push((i, rule, matches));
        }
        chains += "\t}\n";
    }
    let jumps: Vec<_> = (0..FIELDS.len()).map(|i| format!("{i} : jump f{i}")).collect();
    script += &format!(
        "{}{chains}\tchain c {{\n\t\ttype filter hook ingress device \"v1\" priority 0;\n\t\t@ll,72,8 vmap {{ {} }}\n\
         \t\tupdate @seen {{ ether saddr }}\n\t}}\n}}\n",
        set("seen"),
        jumps.join(", "),
    );
    let script = Transaction::parse(&script).unwrap_or_else(|error| panic!("{error}"));
    let frames: Vec<_> = FIELDS.iter().map(Field::values).collect();
    namespace.run(|| {
        apply(&script);
        for (i, field) in FIELDS.iter().enumerate() {
            send(frames[i].iter().enumerate().map(|(at, value)| with_source(i, at, (field.frame)(*value))));
        }
    });
    let total = frames.iter().map(Vec::len).sum::<usize>();
    let until = Instant::now() + LONG;
    let sources = loop {
        let sources = namespace.run(sources);
        if sources["seen"].len() >= total || Instant::now() > until {
            break sources;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(sources["seen"].len(), total, "frames arrive");
    let mut faults = Vec::new();
    for (number, (i, rule, matches)) in rules.iter().enumerate() {
        let found = &sources[&format!("m{number}")];
        for (at, value) in frames[*i].iter().enumerate() {
            let is_found = found.contains(&source(*i, at)[..]);
            if is_found != matches(*value) {
                faults
                    .push(format!("{rule}: {value} {}", if is_found { "matches" } else { "does not match" }));
            }
        }
    }
    println!("{} rules, {total} frames", rules.len());
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// The elements of the sets.
fn sources() -> std::collections::HashMap<String, BTreeSet<Vec<u8>>> {
    let listed = read::ruleset(&mut netlink(), Family::NETDEV).expect("a ruleset").content();
    let sets = listed.into_iter().flat_map(|table| table.sets);
    let keys = |elements: Vec<Element>| elements.iter().map(|of| of.key().bytes().to_vec()).collect();
    sets.map(|(set, elements)| (set.id.name.to_string(), keys(elements))).collect()
}

/// Sends frames out of `v0`, whatever they are.
fn send(frames: impl Iterator<Item = Vec<u8>>) {
    let packets =
        socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    let is_v0 = |of: &nix::ifaddrs::InterfaceAddress| of.interface_name == "v0";
    let address: LinkAddr = getifaddrs()
        .expect("addresses")
        .filter(is_v0)
        .find_map(|of| of.address?.as_link_addr().copied())
        .expect("an address of v0");
    for frame in frames {
        let sent = sendto(packets.as_raw_fd(), &frame, &address, MsgFlags::empty());
        assert_eq!(sent, Ok(frame.len()));
    }
}

/// The source of the frame with this value of this field.
fn source(field: usize, at: usize) -> [u8; 6] {
    [2, 0, 0, u8::try_from(field).unwrap(), 0, u8::try_from(at).unwrap()]
}

fn with_source(field: usize, at: usize, mut frame: Vec<u8>) -> Vec<u8> {
    frame[6..12].copy_from_slice(&source(field, at));
    frame
}

fn ether_frame(parts: &[&[u8]]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 0xfe], &[0; 6][..], &parts.concat()].concat()
}

fn bytes<const N: usize>(number: u64) -> [u8; N] {
    number.to_be_bytes()[8 - N..].try_into().unwrap()
}

/// The first two bytes of a header, and what its fragment is.
fn ip_frame(first: [u64; 2], fragment: u64, body: &[u8]) -> Vec<u8> {
    let mut header = [[first[0]; 1], [first[1]; 1]].map(|[byte]| bytes::<1>(byte)[0]).to_vec();
    header.extend(bytes::<2>(20 + body.len() as u64));
    header.extend([0, 1]);
    header.extend(bytes::<2>(fragment));
    header.extend([64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    ether_frame(&[&[8, 0], &header, body])
}

/// What is behind the version in the first four bytes of a header.
fn ip6_frame(first: u64, next: u8, body: &[u8]) -> Vec<u8> {
    let mut header = bytes::<4>(6 << 28 | first).to_vec();
    header.extend(bytes::<2>(body.len() as u64));
    header.extend([next, 64]);
    header.extend(Ipv6Addr::LOCALHOST.octets());
    header.extend(SERVER6.octets());
    ether_frame(&[&[0x86, 0xdd], &header, body])
}

fn fragment(offset: u64) -> Vec<u8> {
    [&[6, 0], &bytes::<2>(offset)[..], &[0, 0, 0, 7]].concat()
}

/// The length of a header in words, with reserved bits above it, and its flags.
fn tcp(doff: u64, flags: u8) -> Vec<u8> {
    let doff = (doff & 0xf) << 4 | doff >> 8;
    [&[4, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0], &bytes::<1>(doff)[..], &[flags], &[0; 46]].concat()
}

fn vlan_frame(tag: u64) -> Vec<u8> {
    let inner = ip_frame([0x45, 0], 0, &tcp(5, 2));
    ether_frame(&[&[0x81, 0], &bytes::<2>(tag), &inner[12..]])
}
