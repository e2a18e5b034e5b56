//! Where a client goes: the kernel's `jhash`, and the table of Maglev.
//!
//! Rules and [`explain`](crate::explain) have both from here. The kernel computes `jhash ... mod N` as
//! `reciprocal_scale(jhash(key, length, seed), N)` over the key as its registers have it: each part of a
//! concatenation padded with zeros to a multiple of four bytes.
//!
//! The table follows "Maglev: A Fast and Reliable Software Network Load Balancer" (Eisenbud et al., NSDI 2016,
//! section 3.4): each endpoint has an order of all slots of its own (see [`Order`]), and the endpoints take turns
//! to take the first slot of theirs that is still free.

use std::net::{IpAddr, SocketAddr};

use sluicegate_services::{Scheduler, Slots};

/// The seed of the hash of [`Scheduler::SourceHash`]. Nodes of different versions choose the same endpoint
/// for a client as long as neither seed changes.
pub(crate) const SOURCE_HASH_SEED: u32 = 4;
/// The seed of the hash of [`Scheduler::Maglev`].
pub(crate) const MAGLEV_SEED: u32 = 5;

/// Returns the place, among `count`, that `jhash ip saddr mod COUNT` gives to a client.
pub(crate) fn place_by_source(client: IpAddr, count: u32) -> u32 {
    scale(jhash(&octets(client), SOURCE_HASH_SEED), count)
}

/// Returns the slot, among `count`, that `jhash ip saddr . th sport mod COUNT` gives to a client.
pub(crate) fn slot_of(client: SocketAddr, count: u32) -> u32 {
    let mut key = octets(client.ip());
    key.extend(client.port().to_be_bytes());
    key.extend([0; 2]);
    scale(jhash(&key, MAGLEV_SEED), count)
}

/// Returns the endpoint that a scheduler sends a client to; `None` where that depends on more than the client,
/// or without an endpoint. `endpoints` are sorted. Port 0 stands for one that is not known.
pub(crate) fn chosen(
    scheduler: Scheduler,
    client: SocketAddr,
    endpoints: &[SocketAddr],
) -> Option<SocketAddr> {
    let count = u32::try_from(endpoints.len()).ok().filter(|count| *count > 0)?;
    match scheduler {
        Scheduler::SourceHash => endpoints.get(index(place_by_source(client.ip(), count))).copied(),
        Scheduler::Maglev(slots) if client.port() != 0 => {
            let table = maglev(endpoints, slots);
            let slot = slot_of(client, u32::try_from(table.len()).ok()?);
            endpoints.get(*table.get(index(slot))?).copied()
        }
        Scheduler::Random | Scheduler::RoundRobin | Scheduler::Maglev(_) => None,
    }
}

/// Returns the probability with which a scheduler sends a client to each endpoint, if the client's address and
/// port are any.
pub(crate) fn shares(scheduler: Scheduler, endpoints: &[SocketAddr]) -> Vec<f64> {
    let count = |number: usize| u32::try_from(number).map_or(f64::INFINITY, f64::from);
    match scheduler {
        Scheduler::Maglev(slots) => {
            let table = maglev(endpoints, slots);
            let mut of_each = vec![0_usize; endpoints.len()];
            table.iter().for_each(|place| of_each.get_mut(*place).into_iter().for_each(|slots| *slots += 1));
            of_each.into_iter().map(|slots| count(slots) / count(table.len())).collect()
        }
        _ => vec![1.0 / count(endpoints.len()); endpoints.len()],
    }
}

/// Returns for each slot the place of its endpoint in the list. It has more slots than asked for where there
/// are more endpoints; without an endpoint it is empty.
///
/// What an endpoint takes depends on its address and port, not on its place, so that the others keep almost
/// all of their slots when one comes or goes.
pub(crate) fn maglev(endpoints: &[SocketAddr], slots: Slots) -> Vec<usize> {
    if endpoints.is_empty() {
        return Vec::new();
    }
    let slots = slots.for_endpoints(endpoints.len()).get();
    let inverses = inverses(slots);
    let mut orders: Vec<Order<'_>> =
        endpoints.iter().map(|endpoint| Order::of(*endpoint, &inverses)).collect();
    let mut table: Vec<Option<usize>> = vec![None; index(slots)];
    let mut free = table.len();
    loop {
        for (place, order) in orders.iter_mut().enumerate() {
            if free == 0 {
                return table.into_iter().flatten().collect();
            }
            // Every order has all slots, one of which is free.
            while let Some(slot) = table.get_mut(order.take()) {
                if slot.is_none() {
                    *slot = Some(place);
                    free -= 1;
                    break;
                }
            }
        }
    }
}

/// The order in which an endpoint asks for slots: `start + factor / (turn + shift)`, in numbers modulo the prime
/// number of slots, where a number divided by 0 is 0. Every slot comes once.
///
/// The paper has `start + factor * turn`. With few slots two endpoints often have the same factor then, so that
/// one walks behind the other, and moves on a long way when that one goes.
struct Order<'a> {
    turn: usize,
    start: u64,
    factor: u64,
    inverses: &'a [u64],
}

impl<'a> Order<'a> {
    fn of(endpoint: SocketAddr, inverses: &'a [u64]) -> Self {
        let mut name = octets(endpoint.ip());
        name.extend(endpoint.port().to_be_bytes());
        let slots = u32::try_from(inverses.len()).unwrap_or(u32::MAX);
        let hash = |seed| jhash(&name, seed);
        Self {
            turn: index(scale(hash(2), slots)),
            start: scale(hash(0), slots).into(),
            factor: 1 + u64::from(scale(hash(1), slots - 1)),
            inverses,
        }
    }

    fn take(&mut self) -> usize {
        let inverse = self.inverses.get(self.turn).copied().unwrap_or_default();
        self.turn = (self.turn + 1) % self.inverses.len();
        let slot = (self.start + self.factor * inverse) % self.inverses.len() as u64;
        usize::try_from(slot).unwrap_or_default()
    }
}

/// Returns the inverse of each number modulo a prime; 0 for 0.
fn inverses(prime: u32) -> Vec<u64> {
    let modulus = u64::from(prime);
    let mut inverses = vec![0, 1];
    for number in 2..modulus {
        let of_rest = usize::try_from(modulus % number).ok().and_then(|rest| inverses.get(rest).copied());
        inverses.push((modulus - modulus / number) * of_rest.unwrap_or_default() % modulus);
    }
    inverses
}

pub(crate) fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Maps a hash to a number below `modulus`: the kernel's `reciprocal_scale`, which multiplies instead of
/// dividing.
fn scale(hash: u32, modulus: u32) -> u32 {
    u32::try_from((u64::from(hash) * u64::from(modulus)) >> 32).unwrap_or_default()
}

/// Returns the hash `lookup3` of Bob Jenkins (2006, public domain), which the kernel has as `jhash`.
///
/// Words are read in the byte order of the machine, as the kernel reads them: nodes of different byte orders
/// choose different endpoints for a client of IPv6, whose address is more than the first three words.
fn jhash(key: &[u8], seed: u32) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(u32::try_from(key.len()).unwrap_or(u32::MAX)).wrapping_add(seed);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = key;
    while rest.len() > 12 {
        let (block, after) = rest.split_at(12);
        let [x, y, z] = words(block, u32::from_ne_bytes);
        (a, b, c) = mix(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
        rest = after;
    }
    if rest.is_empty() {
        return c;
    }
    // The last block is read byte by byte, the first of a word being the lowest.
    let [x, y, z] = words(rest, u32::from_le_bytes);
    finish(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z))
}

/// Returns three words of at most 12 bytes; what is missing is 0.
fn words(bytes: &[u8], read: fn([u8; 4]) -> u32) -> [u32; 3] {
    let mut chunks = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        read(word)
    });
    [0; 3].map(|_: u32| chunks.next().unwrap_or_default())
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    for [first, second, third] in [[4, 6, 8], [16, 19, 4]] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    (a, b, c)
}

fn finish(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn endpoints(numbers: impl IntoIterator<Item = u16>) -> Vec<SocketAddr> {
        let address = |number: u16| {
            let [high, low] = number.to_be_bytes();
            SocketAddr::from(([10, 244, high, low], 8080))
        };
        numbers.into_iter().map(address).collect()
    }

    /// Returns the number of slots of each endpoint.
    fn shares(endpoints: &[SocketAddr], slots: Slots) -> BTreeMap<SocketAddr, usize> {
        let mut shares = BTreeMap::new();
        for place in maglev(endpoints, slots) {
            *shares.entry(endpoints[place]).or_default() += 1;
        }
        shares
    }

    /// Returns the part of slots that lead elsewhere with other endpoints.
    fn moved(before: &[SocketAddr], after: &[SocketAddr], slots: Slots) -> f64 {
        let (old, new) = (maglev(before, slots), maglev(after, slots));
        let differ = old.iter().zip(&new).filter(|(old, new)| before[**old] != after[**new]).count();
        differ as f64 / old.len() as f64
    }

    #[test]
    fn the_hash_is_lookup3() {
        // The values in the comments of lookup3.c.
        let text = b"Four score and seven years ago";
        assert_eq!([jhash(b"", 0), jhash(b"", 0xdead_beef)], [0xdead_beef, 0xbd5b_7dde]);
        if cfg!(target_endian = "little") {
            assert_eq!([jhash(text, 0), jhash(text, 1)], [0x1777_0551, 0xcd62_8161]);
        }
        assert_eq!([scale(0, 10), scale(u32::MAX, 10), scale(1 << 31, 10)], [0, 9, 5]);
    }

    #[test]
    fn an_order_has_every_slot_once() {
        for slots in [11, 251, 65_521] {
            let inverses = inverses(slots);
            for endpoint in endpoints(0..20) {
                let mut order = Order::of(endpoint, &inverses);
                let seen: std::collections::BTreeSet<_> = inverses.iter().map(|_| order.take()).collect();
                assert_eq!((seen.len(), seen.last()), (inverses.len(), Some(&(inverses.len() - 1))));
            }
        }
    }

    #[test]
    fn a_table_stays_the_same_over_an_update_of_this_program() {
        let table = maglev(&endpoints(1..=3), Slots::new(11).unwrap());
        assert_eq!(table, TABLE_OF_THREE);
    }

    const TABLE_OF_THREE: [usize; 11] = [2, 0, 2, 0, 0, 1, 2, 1, 1, 0, 1];

    proptest! {
        /// As many turns as there are make every share the same but for one slot.
        #[test]
        fn every_endpoint_has_its_part_of_the_slots(
            numbers in prop::collection::btree_set(any::<u16>(), 1..300),
            slots in prop::sample::select(vec![11, 101, 251, 1021]),
        ) {
            let endpoints = endpoints(numbers);
            let slots = Slots::new(slots).unwrap();
            let shares = shares(&endpoints, slots);
            prop_assert_eq!(shares.len(), endpoints.len());
            let (least, most) = (shares.values().min().unwrap(), shares.values().max().unwrap());
            prop_assert!(most - least <= 1, "{} to {}", least, most);
        }

        /// The clients of an endpoint that goes must move; of the others few do. Of 400,000 sets of ten, two moved more
        /// than a quarter, the worst 0.30; `maglev_moves_a_fraction_of_what_a_modulus_moves` has the mean.
        #[test]
        fn an_endpoint_that_goes_or_comes_moves_little_more_than_its_own_share(
            numbers in prop::collection::btree_set(any::<u16>(), 10), which in 0..10usize,
        ) {
            let all = endpoints(numbers);
            let mut without = all.clone();
            without.remove(which);
            let slots = Slots::default();
            for moved in [moved(&all, &without, slots), moved(&without, &all, slots)] {
                prop_assert!((0.09..0.4).contains(&moved), "{moved}");
            }
        }

        #[test]
        fn all_nodes_choose_an_endpoint_of_the_list(
            ip: [u8; 16], is_v6: bool, port in 1..=u16::MAX, count in 0..40u16,
        ) {
            let ip = if is_v6 { IpAddr::from(ip) } else { IpAddr::from([ip[0], ip[1], ip[2], ip[3]]) };
            let endpoints = endpoints(0..count);
            for scheduler in [Scheduler::SourceHash, Scheduler::Maglev(Slots::default())] {
                let found = chosen(scheduler, SocketAddr::new(ip, port), &endpoints);
                prop_assert_eq!(found.is_some(), count > 0);
                prop_assert!(found.is_none_or(|endpoint| endpoints.contains(&endpoint)));
                prop_assert_eq!(found, chosen(scheduler, SocketAddr::new(ip, port), &endpoints));
            }
        }
    }

    /// The figures of the guide, over many sets of ten endpoints, are those that are computed here; `--nocapture`
    /// prints them.
    #[test]
    fn maglev_moves_a_fraction_of_what_a_modulus_moves() {
        for count in [2, 3, 5, 10, 50] {
            let (mut sum, mut worst, mut by_modulus) = (0.0, 0.0_f64, 0.0);
            for set in 0..100_u16 {
                let all = endpoints((0..count).map(|n| set * 50 + n));
                let mut without = all.clone();
                without.remove(usize::from(set % count));
                let moves = moved(&all, &without, Slots::default());
                (sum, worst) = (sum + moves, worst.max(moves));
                let place = |hash: u32, list: &[SocketAddr]| {
                    list[index(scale(hash, u32::try_from(list.len()).unwrap()))]
                };
                let elsewhere = (0..1000_u32).filter(|n| {
                    let hash = n * (u32::MAX / 1000);
                    place(hash, &all) != place(hash, &without)
                });
                by_modulus += elsewhere.count() as f64 / 1000.0;
            }
            let own = 1.0 / f64::from(count);
            println!(
                "one of {count} goes: moved {:.3}, at most {worst:.3}; own share {own:.3}; modulus {:.3}",
                sum / 100.0,
                by_modulus / 100.0
            );
            assert!(sum < by_modulus || count == 2, "{sum} {by_modulus}");
        }
        let mut rows = Vec::new();
        for (name, slots) in [("`maglev` (251)", 251), ("`maglev:1021`", 1021), ("`maglev:4093`", 4093)] {
            let slots = Slots::new(slots).unwrap();
            let (mut by_table, mut by_modulus, mut most) = (0.0, 0.0, 0.0_f64);
            let sets: u16 = 200;
            for set in 0..sets {
                let all = endpoints((0..10).map(|n| set * 10 + n));
                let mut without = all.clone();
                without.remove(usize::from(set) % 10);
                let moves = moved(&all, &without, slots);
                (by_table, most) = (by_table + moves, most.max(moves));
                let elsewhere = (0..2000_u16).filter(|client| {
                    let [high, low] = client.to_be_bytes();
                    let client = SocketAddr::from(([192, 168, high, low], 1));
                    let chosen = |list: &[SocketAddr]| chosen(Scheduler::SourceHash, client, list);
                    chosen(&all) != chosen(&without)
                });
                by_modulus += elsewhere.count() as f64 / 2000.0;
            }
            let (by_table, by_modulus) = (by_table / f64::from(sets), by_modulus / f64::from(sets));
            println!("{}: moved {by_table:.3}, at most {most:.3}; modulus {by_modulus:.3}", slots.get());
            assert!(by_table < 0.16 && most < 0.2 && by_modulus > 0.3, "{by_table} {by_modulus}");
            let mut row = format!("| {name} | {:.1} % | {:.1} % |", 100.0 * by_table, 100.0 * most);
            let of_source_hash = format!("| `source-hash` | {:.1} % | | | | | |", 100.0 * by_modulus);
            for count in [2, 5, 10, 50, 100] {
                let shares = shares(&endpoints(0..count), slots);
                let most = *shares.values().max().unwrap() as f64;
                let mean = f64::from(slots.get()) / f64::from(count);
                println!("{}: {count} endpoints, largest over mean {:.3}", slots.get(), most / mean);
                assert!(most / mean < 1.2);
                if count > 2 {
                    row += &format!(" {:.3} |", most / mean);
                }
            }
            rows.extend([row, of_source_hash]);
        }
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guide/schedulers.md");
        let guide = std::fs::read_to_string(guide).expect("the guide");
        let missing: Vec<_> = rows.iter().filter(|row| !guide.lines().any(|line| line == **row)).collect();
        assert!(missing.is_empty(), "guide/schedulers.md has other figures than {missing:#?}");
    }
}
