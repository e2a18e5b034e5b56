//! The bound on open connections, over all servers: in total and for each peer.
//!
//! A new connection is always admitted. Where that exceeds a bound, the oldest connection of its peer, or of
//! the peer with the most, is closed: an honest client asks at once and is answered at once, while whoever
//! wants to occupy places leaves connections open.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// The open connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    /// By number, so that the first is the oldest.
    places: BTreeMap<u64, (Peer, Option<AbortHandle>)>,
    by_peer: HashMap<Peer, usize>,
    next: u64,
}

/// A peer: an IPv4 address, or the first half of an IPv6 address, since a host may have all of the second.
type Peer = IpAddr;

/// The place of one connection, free again when dropped.
#[derive(Debug)]
pub(super) struct Place {
    open: Connections,
    number: u64,
}

impl Connections {
    /// Takes a place for a connection from `address`. Closes another connection where there is no room.
    pub(super) fn admit(&self, address: IpAddr) -> Place {
        let peer = peer(address);
        let mut open = self.lock();
        if open.by_peer.get(&peer).is_some_and(|count| *count >= MAX_PER_PEER) {
            open.close_oldest(peer);
        } else if open.places.len() >= MAX_CONNECTIONS
            && let Some(busiest) = open.busiest()
        {
            open.close_oldest(busiest);
        }
        let number = open.next;
        open.next += 1;
        open.places.insert(number, (peer, None));
        *open.by_peer.entry(peer).or_default() += 1;
        Place { open: self.clone(), number }
    }

    /// Sets the task of the connection that has the place with this number.
    pub(super) fn set_task(&self, number: u64, task: AbortHandle) {
        match self.lock().places.get_mut(&number) {
            Some((_, place)) => *place = Some(task),
            None => task.abort(),
        }
    }

    /// Locks the connections, also after a panic: they are consistent at every moment.
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Returns the peer with the most connections; of several, the one with the oldest.
    fn busiest(&self) -> Option<Peer> {
        let most = self.by_peer.values().copied().max()?;
        let has_most = |peer: &&Peer| self.by_peer.get(*peer) == Some(&most);
        self.places.values().map(|(peer, _)| peer).find(has_most).copied()
    }

    fn close_oldest(&mut self, of: Peer) {
        let oldest = self.places.iter().find(|(_, (peer, _))| *peer == of).map(|(number, _)| *number);
        if let Some((_, Some(task))) = oldest.and_then(|number| self.remove(number)) {
            task.abort();
        }
    }

    fn remove(&mut self, number: u64) -> Option<(Peer, Option<AbortHandle>)> {
        let place = self.places.remove(&number)?;
        if let Some(count) = self.by_peer.get_mut(&place.0) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&place.0);
            }
        }
        Some(place)
    }
}

impl Place {
    /// Returns its number.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.lock().remove(self.number);
    }
}

fn peer(address: IpAddr) -> Peer {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

/// The most connections of all servers together. Each takes a descriptor, of which the daemon needs some.
const MAX_CONNECTIONS: usize = 512;
/// The most connections of one peer.
const MAX_PER_PEER: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        [10, 0, last, 1].into()
    }

    fn numbers(open: &Connections) -> Vec<u64> {
        open.lock().places.keys().copied().collect()
    }

    #[test]
    fn a_peer_loses_its_own_oldest_connection() {
        let open = Connections::default();
        let other = open.admit(ip(2));
        let mut places: Vec<_> = (0..MAX_PER_PEER).map(|_| open.admit(ip(1))).collect();
        places.push(open.admit(ip(1)));
        assert_eq!(numbers(&open).len(), MAX_PER_PEER + 1);
        assert!(numbers(&open).contains(&other.number()) && !numbers(&open).contains(&places[0].number()));
        drop(places);
        assert_eq!(numbers(&open), [other.number()]);
        drop(other);
        assert!(open.lock().by_peer.is_empty());
    }

    #[test]
    fn many_peers_share_the_places_and_the_busiest_makes_room() {
        let open = Connections::default();
        let places: Vec<_> =
            (0..MAX_CONNECTIONS).map(|n| open.admit(ip(u8::try_from(n / 4).unwrap()))).collect();
        let more = open.admit(ip(200));
        assert_eq!(numbers(&open).len(), MAX_CONNECTIONS);
        assert_eq!(
            numbers(&open).first(),
            Some(&places[1].number()),
            "all have four, so the oldest of all went"
        );
        let busy: Vec<_> = (0..5).map(|_| open.admit(ip(3))).collect();
        let most: Vec<_> = open.lock().by_peer.values().copied().collect();
        assert_eq!(most.iter().sum::<usize>(), MAX_CONNECTIONS);
        drop((places, more, busy));
        assert!(numbers(&open).is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(peer(parse("fd00:1:2:3::1")), peer(parse("fd00:1:2:3:4:5:6:7")));
        assert_ne!(peer(parse("fd00:1:2:3::1")), peer(parse("fd00:1:2:4::1")));
    }
}
