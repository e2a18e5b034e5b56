//! Connections by frontend and by endpoint: counters in elements, which are carried over when we change these.
//!
//! The chains that look the elements up are of type `nat`, which only the first packet of a connection passes,
//! so that one packet is one connection. An element that gets other data is a new element for the kernel,
//! with a counter of its own: what the old one counted is read before, and the new one begins there. What is
//! counted between the two is lost, as the kernel has no way to do both at once.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::num::NonZeroU16;

use sluicegate_netlink::{Errno, Transport};
use sluicegate_nftables as nft;
use sluicegate_nftables::expr::{Data, Expr};
use sluicegate_nftables::lang::Counter;
use sluicegate_nftables::read::{self, Ruleset};
use sluicegate_nftables::{
    Element, ElementData, Elements, Object, Operation, SetId, TableContent, TableId, Target, Transaction,
};
use sluicegate_services::{Family, Frontend, Protocol};

use super::element::{Container, Path, Scope};
use super::programmed::{address, endpoint, protocol_and_port};
use super::schema::{TABLE, fixed_name, nft_family};
use super::settings::Counting;
use crate::Error;

/// The connections that the kernel has counted since it has the elements.
///
/// A frontend or an endpoint without an element is not among them: one without endpoints, one that is new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// By frontend, those of clients that have a list of endpoints of their own included.
    pub frontends: HashMap<Frontend, u64>,
    /// By frontend and endpoint; empty unless these are counted.
    pub endpoints: HashMap<(Frontend, SocketAddr), u64>,
}

/// Reads the connections that tables with these settings count, in one dump of each map.
///
/// Under the scheduler `maglev`, an endpoint whose slots another gets loses what these have counted.
///
/// # Errors
/// [`Error::Netlink`] when they cannot be listed.
pub fn connections(
    transport: &mut (impl Transport + ?Sized),
    families: &[Family],
    counting: Counting,
) -> Result<Connections, Error> {
    let mut found = Connections::default();
    for family in families {
        let table = TableId::new(nft_family(*family), fixed_name(TABLE));
        for container in Container::ALL.into_iter().filter(|container| counting.has(*container)) {
            let Some(elements) = list(transport, &table.map(fixed_name(container.name())))? else { continue };
            for element in &elements {
                found.add(*family, container, element);
            }
        }
    }
    Ok(found)
}

impl Connections {
    fn add(&mut self, family: Family, container: Container, element: &read::Element) {
        let Some(count) = count_of(element) else { return };
        match container {
            Container::Dispatch(scope, _) => {
                if let Some(frontend) = frontend(family, scope, &element.key) {
                    raise(self.frontends.entry(frontend).or_default(), count);
                }
            }
            Container::Endpoints(scope, _, protocol) | Container::StickyEndpoints(scope, _, protocol) => {
                let Some(Data::Value(value)) = &element.data else { return };
                let frontend = numbered_frontend(family, scope, protocol, &element.key);
                if let Some((frontend, endpoint)) = frontend.zip(endpoint(family, value)) {
                    raise(self.endpoints.entry((frontend, endpoint)).or_default(), count);
                }
            }
            _ => {}
        }
    }
}

impl Counting {
    /// Returns whether the elements of a set or map have counters.
    pub(super) const fn has(self, container: Container) -> bool {
        match container {
            Container::Dispatch(..) => !matches!(self, Self::Off),
            Container::Endpoints(..) | Container::StickyEndpoints(..) => matches!(self, Self::Endpoints),
            _ => false,
        }
    }

    /// Returns the container of a set whose elements have counters.
    fn container(self, set: &SetId) -> Option<Container> {
        let name = set.name.as_str();
        let is_it = |container: &Container| self.has(*container) && container.name() == name;
        Container::ALL.into_iter().find(is_it).filter(|_| set.table.name.as_str() == TABLE)
    }
}

/// Has new elements begin with what those that they replace have counted, in content that is going to be
/// compared with the kernel's.
pub(super) fn carry_into_content(counting: Counting, wanted: &mut [TableContent], kernel: &Ruleset) {
    let mut counted = Counted::default();
    for (set, elements) in &kernel.sets {
        let id = TableId::new(set.family, set.table.clone()).map(set.name.clone());
        if let Some(container) = counting.container(&id) {
            elements.iter().for_each(|element| counted.add(container, &id, element));
        }
    }
    if counted.is_empty() {
        return;
    }
    let sets = wanted.iter_mut().flat_map(|content| &mut content.sets);
    let mut lists: Vec<_> = sets
        .filter_map(|(set, list)| counting.container(&set.id).map(|container| (container, &set.id, list)))
        .collect();
    for (container, id, list) in &mut lists {
        list.iter_mut().for_each(|element| counted.give_same(*container, id, element));
    }
    for (container, id, list) in &mut lists {
        list.iter_mut().for_each(|element| counted.give_rest(*container, id, element));
    }
}

/// Returns a transaction of the planner whose new elements begin with what those that it deletes have counted.
///
/// # Errors
/// [`Error::Netlink`] when the counters cannot be read.
pub(super) fn carried(
    counting: Counting,
    transaction: Transaction,
    transport: &mut impl Transport,
) -> Result<Transaction, Error> {
    if counting == Counting::Off {
        return Ok(transaction);
    }
    let mut counted = Counted::default();
    for operation in transaction.operations() {
        let Operation::Delete(target) = operation else { continue };
        match target {
            Target::Table(table) if table.name.as_str() == TABLE => {
                for container in Container::ALL.into_iter().filter(|container| counting.has(*container)) {
                    counted.add_set(container, &table.map(fixed_name(container.name())), transport)?;
                }
            }
            Target::Set(id) => {
                if let Some(container) = counting.container(id) {
                    counted.add_set(container, id, transport)?;
                }
            }
            Target::Elements(Elements { set, list }) => {
                if let Some(container) = counting.container(set) {
                    counted.add_elements(container, set, list, transport)?;
                }
            }
            _ => {}
        }
    }
    if counted.is_empty() {
        return Ok(transaction);
    }
    let mut operations = transaction.operations().to_vec();
    for pass in [Counted::give_same, Counted::give_rest] {
        for operation in &mut operations {
            let Operation::Add(Object::Elements(Elements { set, list })) = operation else { continue };
            let Some(container) = counting.container(set) else { continue };
            list.iter_mut().for_each(|element| pass(&mut counted, container, set, element));
        }
    }
    let mut carried = Transaction::new();
    for operation in operations {
        carried.push(operation);
    }
    Ok(carried)
}

/// What elements have counted that a transaction deletes.
#[derive(Debug, Default)]
struct Counted {
    /// By the element itself, which may be added again as it is.
    same: HashMap<(nft::Family, Container, Vec<u8>, Vec<u8>), Counter>,
    /// By the frontend or endpoint that the element stood for.
    rest: HashMap<Subject, Counter>,
}

/// A frontend or one of its endpoints, whichever path and number lead to it.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Subject {
    Frontend(nft::Family, Scope, Vec<u8>),
    Endpoint(nft::Family, Scope, Path, Protocol, Vec<u8>, Vec<u8>),
}

impl Subject {
    fn new(family: nft::Family, container: Container, key: &[u8], value: &[u8]) -> Option<Self> {
        match container {
            Container::Dispatch(scope, _) => Some(Self::Frontend(family, scope, key.to_vec())),
            Container::Endpoints(scope, path, protocol)
            | Container::StickyEndpoints(scope, path, protocol) => {
                let (frontend, _number) = key.split_last_chunk::<4>()?;
                Some(Self::Endpoint(family, scope, path, protocol, frontend.to_vec(), value.to_vec()))
            }
            _ => None,
        }
    }
}

impl Counted {
    fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Notes what an element has counted.
    fn add(&mut self, container: Container, set: &SetId, element: &read::Element) {
        let Some(count) = counter_of(element).filter(|count| count.packets > 0) else { return };
        let value = match (&element.data, container) {
            (Some(Data::Value(value)), Container::Endpoints(..) | Container::StickyEndpoints(..)) => &**value,
            _ => &[],
        };
        let family = set.table.family;
        if let Some(subject) = Subject::new(family, container, &element.key, value) {
            self.same.insert((family, container, element.key.to_vec(), value.to_vec()), count);
            let sum = self.rest.entry(subject).or_default();
            raise(&mut sum.packets, count.packets);
            raise(&mut sum.bytes, count.bytes);
        }
    }

    /// Notes what the elements of a set have counted, if it exists.
    fn add_set(
        &mut self,
        container: Container,
        set: &SetId,
        transport: &mut impl Transport,
    ) -> Result<(), Error> {
        for element in list(transport, set)?.into_iter().flatten() {
            self.add(container, set, &element);
        }
        Ok(())
    }

    /// Notes what these elements of a set have counted.
    fn add_elements(
        &mut self,
        container: Container,
        set: &SetId,
        wanted: &[Element],
        transport: &mut impl Transport,
    ) -> Result<(), Error> {
        // A dump takes about a third of the time for each element.
        if wanted.len() > ONE_BY_ONE {
            let keys: HashSet<_> = wanted.iter().map(|element| element.key().bytes().to_vec()).collect();
            for element in list(transport, set)?.into_iter().flatten() {
                if keys.contains(&*element.key) {
                    self.add(container, set, &element);
                }
            }
            return Ok(());
        }
        for element in wanted {
            match read::element(transport, set, element.key().bytes()) {
                Ok(found) => found.iter().for_each(|element| self.add(container, set, element)),
                Err(error) if error.errno() == Some(Errno::ENOENT) => {}
                Err(error) => return Err(reading(error)),
            }
        }
        Ok(())
    }

    /// Lets an element begin with what the same one has counted before.
    fn give_same(&mut self, container: Container, set: &SetId, element: &mut Element) {
        let (family, key, value) = (set.table.family, element.key(), value_of(container, element));
        let Some(count) = self.same.remove(&(family, container, key.bytes().to_vec(), value.clone())) else {
            return;
        };
        let sum =
            Subject::new(family, container, key.bytes(), &value).and_then(|own| self.rest.get_mut(&own));
        if let Some(sum) = sum {
            sum.packets = sum.packets.saturating_sub(count.packets);
            sum.bytes = sum.bytes.saturating_sub(count.bytes);
        }
        *element = element.clone().statement(count);
    }

    /// Lets the first element of a frontend or endpoint begin with what others have counted for it.
    fn give_rest(&mut self, container: Container, set: &SetId, element: &mut Element) {
        if !element.statements().is_empty() {
            return;
        }
        let (key, value) = (element.key(), value_of(container, element));
        let subject = Subject::new(set.table.family, container, key.bytes(), &value);
        let count = subject.and_then(|subject| self.rest.remove(&subject)).filter(|count| count.packets > 0);
        if let Some(count) = count {
            *element = element.clone().statement(count);
        }
    }
}

/// Returns the bytes of the endpoint that an element leads to; none of a frontend, whose element changes when
/// the number of its endpoints does.
fn value_of(container: Container, element: &Element) -> Vec<u8> {
    match (container, element.data()) {
        (Container::Endpoints(..) | Container::StickyEndpoints(..), ElementData::Value(value)) => {
            value.bytes().to_vec()
        }
        _ => Vec::new(),
    }
}

/// Adds to a count, which does not wrap: another program may have set a counter to any number.
fn raise(count: &mut u64, by: u64) {
    *count = count.saturating_add(by);
}

fn count_of(element: &read::Element) -> Option<u64> {
    counter_of(element).map(|counter| counter.packets)
}

fn counter_of(element: &read::Element) -> Option<Counter> {
    element.details().expressions.iter().find_map(|expression| match expression {
        Expr::Counter(counter) => Some(Counter {
            packets: counter.packets.unwrap_or_default(),
            bytes: counter.bytes.unwrap_or_default(),
        }),
        _ => None,
    })
}

/// Returns the elements of a set; `None` if it does not exist.
fn list(transport: &mut (impl Transport + ?Sized), set: &SetId) -> Result<Option<Vec<read::Element>>, Error> {
    match read::elements(transport, set) {
        Ok(elements) => Ok(Some(elements)),
        Err(error) if error.errno() == Some(Errno::ENOENT) => Ok(None),
        Err(error) => Err(reading(error)),
    }
}

fn reading(error: sluicegate_nftables::Error) -> Error {
    Error::reading("reading the counted connections", error)
}

/// Decodes the frontend of a key of `service-ips` and the like.
fn frontend(family: Family, scope: Scope, key: &[u8]) -> Option<Frontend> {
    match scope {
        Scope::Address => {
            let (ip, rest) = address(family, key)?;
            let (protocol, port) = protocol_and_port(rest)?;
            Some(Frontend::Address(ip, protocol, port))
        }
        Scope::NodePort => {
            let (protocol, port) = protocol_and_port(key)?;
            Some(Frontend::NodePort(family, protocol, port))
        }
    }
}

/// Decodes the frontend of a key of `endpoints-tcp` and the like.
fn numbered_frontend(family: Family, scope: Scope, protocol: Protocol, key: &[u8]) -> Option<Frontend> {
    let port = |rest: &[u8]| match *rest {
        [high, low, ..] => NonZeroU16::new(u16::from_be_bytes([high, low])),
        _ => None,
    };
    match scope {
        Scope::Address => {
            let (ip, rest) = address(family, key)?;
            Some(Frontend::Address(ip, protocol, port(rest)?))
        }
        Scope::NodePort => Some(Frontend::NodePort(family, protocol, port(key)?)),
    }
}

/// The number of elements up to which each is asked for.
const ONE_BY_ONE: usize = 256;
